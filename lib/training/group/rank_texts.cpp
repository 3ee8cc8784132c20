#include "training/group/rank_texts.hpp"

#include <ATen/ATen.h>

#include "taas/collectives.hpp"

namespace taas {
namespace {

std::string text_of(const ProcessGroup& group, int rank, std::string text) {
  auto size = at::scalar_tensor(static_cast<std::int64_t>(text.size()), at::kLong).to(group.device());
  broadcast(group, size, rank);
  const auto length = size.item<std::int64_t>();
  text.resize(static_cast<std::size_t>(length));
  auto here = at::from_blob(text.data(), {length}, at::kByte);
  auto bytes = here.to(group.device());
  broadcast(group, bytes, rank);
  here.copy_(bytes);  // under gloo they are the same
  return text;
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
