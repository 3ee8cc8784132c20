#include "taas/collectives.hpp"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "training/backend/c10_error.hpp"
#include "training/group/process_group_state.hpp"
#include "training/group/tensor_checks.hpp"

namespace taas {

class Work::Impl {
 public:
  using Finish = std::function<void()>;
  using Works = std::vector<c10::intrusive_ptr<c10d::Work>>;

  Impl(const char* name, Works works, Finish finish)
      : name_(name), works_(std::move(works)), finish_(std::move(finish)) {}

  /// Each call orders the stream that is current then. What is left to do on this rank is done by the first one, and
  /// later ones come after that.
  void wait() {
    communicating(name_, [&] {
      for (const auto& work : works_) work->wait();
    });
    if (failure_) std::rethrow_exception(failure_);
    if (finish_) finish();
    if (finished_) finished_->block(current_stream());
  }

  void wait(std::chrono::milliseconds timeout) {
    const auto end = std::chrono::steady_clock::now() + timeout;
    for (const auto& work : works_) {
      while (!work->isCompleted()) {
        if (std::chrono::steady_clock::now() >= end) throw_timeout(timeout);
        std::this_thread::sleep_for(kBetweenLooks);
      }
    }
    wait();
  }

 private:
  static constexpr std::chrono::microseconds kBetweenLooks{200};

  [[noreturn]] void throw_timeout(std::chrono::milliseconds timeout) const {
    throw CommunicationError(std::string(name_) + ": not through after " + std::to_string(timeout.count()) + " ms");
  }

  static c10::Stream current_stream() {
    const c10::impl::VirtualGuardImpl cuda(c10::DeviceType::CUDA);
    return cuda.getStream(cuda.getDevice());
  }

  void finish() {
    try {
      std::exchange(finish_, nullptr)();
    } catch (...) {
      failure_ = std::current_exception();
      throw;
    }
    const bool on_gpu = at::hasCUDA() && c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA);
    if (!on_gpu) return;
    finished_.emplace(c10::DeviceType::CUDA);
    finished_->record(current_stream());
  }

  const char* name_;
  Works works_;
  Finish finish_;  ///< what is left to do on this rank when the collective is through
  std::exception_ptr failure_;
  std::optional<c10::Event> finished_;  ///< on the stream of the first wait
};

Work::Work(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
void Work::wait() { impl_->wait(); }
void Work::wait(std::chrono::milliseconds timeout) { impl_->wait(timeout); }

namespace {

using TensorVector = std::vector<at::Tensor>;

template <class Start>
Work start(const char* name, Start&& call, Work::Impl::Finish finish = nullptr) {
  return Work(std::make_shared<Work::Impl>(name, Work::Impl::Works{communicating(name, call)}, std::move(finish)));
}

/// In a group of one process everything is done before it has begun.
Work done(const char* name) { return Work(std::make_shared<Work::Impl>(name, Work::Impl::Works{}, nullptr)); }

c10d::ReduceOp native(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMin:
      return c10d::ReduceOp::MIN;
    case ReduceOp::kMax:
      return c10d::ReduceOp::MAX;
    case ReduceOp::kProduct:
      return c10d::ReduceOp::PRODUCT;
    case ReduceOp::kSum:
    case ReduceOp::kAverage:  // gloo has no average: a sum, divided afterwards, under each backend
      break;
  }
  return c10d::ReduceOp::SUM;
}

Work::Impl::Finish division(const ProcessGroup& group, const at::Tensor& tensor, ReduceOp op) {
  if (op != ReduceOp::kAverage) return nullptr;
  return [tensor, size = group.world_size()]() mutable { tensor.div_(size); };
}

// Rows lie one after the other, so these two see flat tensors. Their names changed between torch 2.11 and 2.15.
template <class Group>
auto gather_rows(Group& group, at::Tensor& output, at::Tensor& input) {
  if constexpr (requires { group.all_gather_single(output, input); }) {
    return group.all_gather_single(output, input);
  } else {
    return group._allgather_base(output, input);
  }
}
template <class Group>
auto scatter_rows(Group& group, at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) {
  if constexpr (requires { group.reduce_scatter_single(output, input, options); }) {
    return group.reduce_scatter_single(output, input, options);
  } else {
    return group._reduce_scatter_base(output, input, options);
  }
}

std::vector<TensorVector> rows_on_root(const ProcessGroup& group, const at::Tensor& all, int root) {
  if (group.rank() != root) return {};
  return {all.detach().unbind(0)};
}

}  // namespace

Work all_reduce_async(const ProcessGroup& group, at::Tensor& tensor, ReduceOp op) {
  check_tensor(group, "all_reduce", tensor);
  check_operation("all_reduce", tensor, op);
  if (!group.native()) return done("all_reduce");
  c10d::AllreduceOptions options;
  options.reduceOp = native(op);
  TensorVector tensors{tensor.detach()};
  return start(
      "all_reduce", [&] { return group.native()->allreduce(tensors, options); }, division(group, tensors.front(), op));
}

Work broadcast_async(const ProcessGroup& group, at::Tensor& tensor, int root) {
  check_tensor(group, "broadcast", tensor);
  check_rank(group, "broadcast", "root", root);
  if (!group.native()) return done("broadcast");
  c10d::BroadcastOptions options;
  options.rootRank = root;
  TensorVector tensors{tensor.detach()};
  return start("broadcast", [&] { return group.native()->broadcast(tensors, options); });
}

Work all_gather_async(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input) {
  check_rows(group, "all_gather", "output", output, "input", input);
  auto all = output.detach().view(-1);
  auto one = input.detach().view(-1);
  if (!group.native()) {
    all.copy_(one);
    return done("all_gather");
  }
  return start("all_gather", [&] { return gather_rows(*group.native(), all, one); });
}

Work reduce_scatter_async(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input, ReduceOp op) {
  check_rows(group, "reduce_scatter", "input", input, "output", output);
  check_operation("reduce_scatter", input, op);
  auto one = output.detach().view(-1);
  auto all = input.detach().view(-1);
  if (!group.native()) {
    one.copy_(all);
    return done("reduce_scatter");
  }
  c10d::ReduceScatterOptions options;
  options.reduceOp = native(op);
  return start(
      "reduce_scatter", [&] { return scatter_rows(*group.native(), one, all, options); }, division(group, one, op));
}

Work gather_async(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input, int root) {
  check_rank(group, "gather", "root", root);
  check_tensor(group, "gather", input);
  if (group.rank() == root) check_rows(group, "gather", "output", output, "input", input);
  auto rows = rows_on_root(group, output, root);
  if (!group.native()) {
    rows[0][0].copy_(input.detach());
    return done("gather");
  }
  c10d::GatherOptions options;
  options.rootRank = root;
  TensorVector inputs{input.detach()};
  return start("gather", [&] { return group.native()->gather(rows, inputs, options); });
}

Work scatter_async(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input, int root) {
  check_rank(group, "scatter", "root", root);
  check_tensor(group, "scatter", output);
  if (group.rank() == root) check_rows(group, "scatter", "input", input, "output", output);
  auto rows = rows_on_root(group, input, root);
  TensorVector outputs{output.detach()};
  if (!group.native()) {
    outputs[0].copy_(rows[0][0]);
    return done("scatter");
  }
  c10d::ScatterOptions options;
  options.rootRank = root;
  return start("scatter", [&] { return group.native()->scatter(outputs, rows, options); });
}

Work send_async(const ProcessGroup& group, const at::Tensor& tensor, int destination, int tag) {
  check_tensor(group, "send", tensor);
  check_other_rank(group, "send", "destination", destination);
  TensorVector tensors{tensor.detach()};
  return start("send", [&] { return group.native()->send(tensors, destination, tag); });
}

Work recv_async(const ProcessGroup& group, at::Tensor& tensor, int source, int tag) {
  check_tensor(group, "recv", tensor);
  check_other_rank(group, "recv", "source", source);
  TensorVector tensors{tensor.detach()};
  return start("recv", [&] { return group.native()->recv(tensors, source, tag); });
}

namespace {

using Works = Work::Impl::Works;

void check_messages(const ProcessGroup& group, const char* role, const std::vector<Message>& messages) {
  for (const auto& message : messages) {
    check_tensor(group, "send_recv", message.tensor);
    check_other_rank(group, "send_recv", role, message.peer);
  }
}

Works start_all(const ProcessGroup& group, const std::vector<Message>& sends, const std::vector<Message>& receives) {
  Works works;
  auto& native = *group.native();
  for (const auto& message : sends) {
    TensorVector tensors{message.tensor.detach()};
    works.push_back(native.send(tensors, message.peer, message.tag));
  }
  for (const auto& message : receives) {
    TensorVector tensors{message.tensor.detach()};
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

Work send_recv_async(const ProcessGroup& group, const std::vector<Message>& sends,
                     const std::vector<Message>& receives) {
  check_messages(group, "destination", sends);
  check_messages(group, "source", receives);
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

void all_reduce(const ProcessGroup& group, at::Tensor& tensor, ReduceOp op) {
  all_reduce_async(group, tensor, op).wait();
}
void broadcast(const ProcessGroup& group, at::Tensor& tensor, int root) { broadcast_async(group, tensor, root).wait(); }
void all_gather(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input) {
  all_gather_async(group, output, input).wait();
}
void reduce_scatter(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input, ReduceOp op) {
  reduce_scatter_async(group, output, input, op).wait();
}
void gather(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input, int root) {
  gather_async(group, output, input, root).wait();
}
void scatter(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input, int root) {
  scatter_async(group, output, input, root).wait();
}
void send(const ProcessGroup& group, const at::Tensor& tensor, int destination, int tag) {
  send_async(group, tensor, destination, tag).wait();
}
void recv(const ProcessGroup& group, at::Tensor& tensor, int source, int tag) {
  recv_async(group, tensor, source, tag).wait();
}

void barrier(const ProcessGroup& group) {
  if (!group.native()) return;
  c10d::BarrierOptions options;
  options.device = group.device();
  if (group.device().is_cuda()) options.device_ids = {group.device().index()};
  start("barrier", [&] { return group.native()->barrier(options); }).wait();
}

}  // namespace taas
