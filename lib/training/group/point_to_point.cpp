#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "taas/collectives.hpp"
#include "training/group/process_group_state.hpp"
#include "training/group/tensor_checks.hpp"
#include "training/group/tensor_forms.hpp"
#include "training/group/work.hpp"

namespace taas {

namespace {

using Works = Work::Impl::Works;

void check_messages(const ProcessGroup& group, const char* role, const std::vector<Message>& messages) {
  for (const auto& message : messages) {
    check_tensor(group, "send_recv", message.tensor);
    check_other_rank(group, "send_recv", role, message.peer);
  }
}

void check_received(const ProcessGroup& group, const std::vector<Message>& messages) {
  check_messages(group, "source", messages);
  for (const auto& message : messages) check_output(group, "send_recv", message.tensor);
}

Works start_all(const ProcessGroup& group, const std::vector<Message>& sends, const std::vector<Message>& receives) {
  Works works;
  auto& native = *group.native();
  for (const auto& message : sends) {
    TensorVector tensors{as_bytes(resolved(message.tensor))};
    works.push_back(native.send(tensors, message.peer, message.tag));
  }
  for (const auto& message : receives) {
    TensorVector tensors{as_bytes(message.tensor)};
    works.push_back(native.recv(tensors, message.peer, message.tag));
  }
  return works;
}

/// nccl: all in one kernel, so that none waits for another one's turn.
Works start_together(const ProcessGroup& group, const std::vector<Message>& sends,
                     const std::vector<Message>& receives) {
  group.native()->startCoalescing(c10::DeviceType::CUDA);
  auto works = start_all(group, sends, receives);
  auto together = group.native()->endCoalescing(c10::DeviceType::CUDA);
  return together ? Works{std::move(together)} : works;
}

bool on_gpu(const std::vector<Message>& messages) {
  return std::ranges::all_of(messages, [](const Message& message) { return message.tensor.is_cuda(); });
}

}  // namespace

Work send_async(const ProcessGroup& group, const at::Tensor& tensor, int destination, int tag) {
  check_tensor(group, "send", tensor);
  check_other_rank(group, "send", "destination", destination);
  TensorVector tensors{as_bytes(resolved(tensor))};
  return start("send", [&] { return group.native()->send(tensors, destination, tag); });
}

Work recv_async(const ProcessGroup& group, at::Tensor& tensor, int source, int tag) {
  check_output(group, "recv", tensor);
  check_other_rank(group, "recv", "source", source);
  TensorVector tensors{as_bytes(tensor)};
  return start("recv", [&] { return group.native()->recv(tensors, source, tag); });
}

Work send_recv_async(const ProcessGroup& group, const std::vector<Message>& sends,
                     const std::vector<Message>& receives) {
  check_messages(group, "destination", sends);
  check_received(group, receives);
  if (sends.empty() && receives.empty()) return done("send_recv");
  const bool together = group.backend() == "nccl" && on_gpu(sends) && on_gpu(receives);
  auto works = communicating("send_recv", [&] {
    return together ? start_together(group, sends, receives) : start_all(group, sends, receives);
  });
  return Work(std::make_shared<Work::Impl>("send_recv", std::move(works), nullptr));
}

void send_recv(const ProcessGroup& group, const std::vector<Message>& sends, const std::vector<Message>& receives) {
  send_recv_async(group, sends, receives).wait();
}

void send(const ProcessGroup& group, const at::Tensor& tensor, int destination, int tag) {
  send_async(group, tensor, destination, tag).wait();
}
void recv(const ProcessGroup& group, at::Tensor& tensor, int source, int tag) {
  recv_async(group, tensor, source, tag).wait();
}

}  // namespace taas
