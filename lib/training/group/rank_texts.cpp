#include "training/group/rank_texts.hpp"

#include <ATen/ATen.h>

#include <cstring>

#include "taas/collectives.hpp"

namespace taas {
namespace {

at::TensorOptions bytes_on(const ProcessGroup& group) { return at::TensorOptions(at::kByte).device(group.device()); }

at::Tensor to_tensor(const std::string& text) {
  auto bytes = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  if (!text.empty()) std::memcpy(bytes.data_ptr(), text.data(), text.size());
  return bytes;
}

std::string to_text(const at::Tensor& bytes) {
  auto here = bytes.cpu().contiguous();
  return {static_cast<const char*>(here.data_ptr()), static_cast<std::size_t>(here.numel())};
}

std::string text_of(const ProcessGroup& group, int rank, const std::string& mine) {
  auto size = at::scalar_tensor(static_cast<std::int64_t>(mine.size()), at::kLong).to(group.device());
  broadcast(group, size, rank);
  auto bytes = group.rank() == rank ? to_tensor(mine).to(group.device())
                                    : at::empty({size.item<std::int64_t>()}, bytes_on(group));
  broadcast(group, bytes, rank);
  return to_text(bytes);
}

}  // namespace

std::string broadcast_text(const ProcessGroup& group, const std::string& mine) { return text_of(group, 0, mine); }

std::string first_text(const ProcessGroup& group, const std::string& mine) {
  auto speaker = at::scalar_tensor(mine.empty() ? group.world_size() : group.rank(), at::kLong).to(group.device());
  all_reduce(group, speaker, ReduceOp::kMin);
  const auto rank = static_cast<int>(speaker.item<std::int64_t>());
  return rank == group.world_size() ? "" : text_of(group, rank, mine);
}

}  // namespace taas
