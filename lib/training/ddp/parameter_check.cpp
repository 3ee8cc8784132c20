#include "training/ddp/parameter_check.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "taas/collectives.hpp"
#include "taas/error.hpp"
#include "training/group/tensor_checks.hpp"

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

std::string broadcast_text(const ProcessGroup& group, const std::string& mine) {
  auto size = at::scalar_tensor(static_cast<std::int64_t>(mine.size()), at::kLong).to(group.device());
  broadcast(group, size);
  auto bytes =
      group.rank() == 0 ? to_tensor(mine).to(group.device()) : at::empty({size.item<std::int64_t>()}, bytes_on(group));
  broadcast(group, bytes);
  return to_text(bytes);
}

/// The text of the lowest rank that has one.
std::string first_text(const ProcessGroup& group, const std::string& mine) {
  auto speaker = at::scalar_tensor(mine.empty() ? group.world_size() : group.rank(), at::kLong).to(group.device());
  all_reduce(group, speaker, ReduceOp::kMin);
  const auto rank = static_cast<int>(speaker.item<std::int64_t>());
  if (rank == group.world_size()) return "";
  auto size = at::scalar_tensor(static_cast<std::int64_t>(mine.size()), at::kLong).to(group.device());
  broadcast(group, size, rank);
  auto bytes = at::empty({size.item<std::int64_t>()}, bytes_on(group));
  if (group.rank() == rank) bytes.copy_(to_tensor(mine));
  broadcast(group, bytes, rank);
  return to_text(bytes);
}

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + '\n';
  return text;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

std::vector<std::string> describe_parameters(const std::vector<NamedTensor>& parameters) {
  std::vector<std::string> lines;
  for (const auto& [name, tensor] : parameters) {
    lines.push_back(name + " " + describe(tensor) + ", strides " + describe_shape(tensor.strides()));
  }
  return lines;
}

std::string first_difference(const std::vector<std::string>& first, const std::vector<std::string>& theirs, int rank) {
  const auto on_rank = " on rank " + std::to_string(rank);
  for (std::size_t i = 0; i < std::min(first.size(), theirs.size()); ++i) {
    if (first[i] != theirs[i]) {
      return "parameters differ between ranks: " + first[i] + " on rank 0, but " + theirs[i] + on_rank;
    }
  }
  if (first.size() == theirs.size()) return "";
  const auto& longer = first.size() > theirs.size() ? first : theirs;
  return "parameters differ between ranks: " + std::to_string(first.size()) + " on rank 0, but " +
         std::to_string(theirs.size()) + on_rank + "; the first of one side alone is " +
         longer[std::min(first.size(), theirs.size())];
}

void check_same_parameters(const ProcessGroup& group, const std::vector<NamedTensor>& parameters) {
  const auto mine = describe_parameters(parameters);
  const auto first = split(broadcast_text(group, join(mine)));
  const auto difference = first_text(group, first_difference(first, mine, group.rank()));
  if (!difference.empty()) throw InvalidArgument(difference);
}

}  // namespace taas
