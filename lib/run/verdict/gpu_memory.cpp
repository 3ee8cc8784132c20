#include "run/verdict/gpu_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace taas::run {
namespace {

constexpr std::array<std::string_view, 4> kWordsOfFullGpu{"CUDA out of memory", "torch.OutOfMemoryError",
                                                          "CUDA error: out of memory", "HIP out of memory"};
constexpr std::array<std::string_view, 4> kWordsOfCudaErrors{"CUDA error", "unhandled cuda error", "CUBLAS_STATUS_",
                                                             "CUDNN_STATUS_"};
constexpr std::size_t kMostHoldersNamed = 4;

std::optional<NodeIndex> node_of_rank(int rank, const Policy& policy) {
  auto index = static_cast<std::size_t>(rank);
  return index < policy.node_of_rank.size() ? std::optional(policy.node_of_rank[index]) : std::nullopt;
}

/// Process ids are those of the culprit's machine.
std::optional<int> rank_with_pid(int pid, Rank culprit, const GenerationRecord& generation, const Policy& policy) {
  for (int rank = 0; rank < static_cast<int>(generation.ranks().size()); ++rank) {
    if (generation.rank(Rank{rank}).pid == pid && node_of_rank(rank, policy) == node_of_rank(culprit.value, policy)) {
      return rank;
    }
  }
  return std::nullopt;
}

std::string amount(std::uint64_t bytes) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  return bytes == 0 ? "an unknown amount" : fmt::format("{:.1f} GiB", static_cast<double>(bytes) / kGiB);
}

/// "GPU 3"; names begin so themselves.
std::string name_of_gpu(const std::string& gpu) {
  bool is_number = !gpu.empty() && gpu.find_first_not_of("0123456789") == gpu.npos;
  return is_number ? "GPU " + gpu : gpu;
}

}  // namespace

bool tells_of_full_gpu(std::string_view text) {
  return std::ranges::any_of(kWordsOfFullGpu, [&](std::string_view words) { return text.find(words) != text.npos; });
}

bool tells_of_cuda_error(std::string_view text) {
  return std::ranges::any_of(kWordsOfCudaErrors, [&](std::string_view words) { return text.find(words) != text.npos; });
}

std::string name_gpu_holders(Rank culprit, const GenerationRecord& generation, const Policy& policy) {
  const auto& evidence = generation.rank(culprit).evidence;
  std::string text;
  std::size_t named = 0;
  for (const auto& holder : evidence.gpu_holders) {
    if (named == kMostHoldersNamed) {
      text += fmt::format(", and {} more", evidence.gpu_holders.size() - named);
      break;
    }
    auto rank = rank_with_pid(holder.pid, culprit, generation, policy);
    auto who = rank ? fmt::format("rank {}", *rank) : fmt::format("process {}", holder.pid);
    if (!rank && !holder.name.empty()) who += fmt::format(" ({})", holder.name);
    text += fmt::format("{}{}: {}", named == 0 ? "" : ", ", who, amount(holder.bytes));
    ++named;
  }
  return text.empty() ? text : fmt::format("{}'s memory is held by {}", name_of_gpu(evidence.gpu), text);
}

std::string name_gpu_trouble(const Evidence& evidence) {
  if (evidence.gpu_trouble.empty()) return "";
  return fmt::format("{} {}: dmesg has an Xid; leave the node out, or reset the GPU", name_of_gpu(evidence.gpu),
                     evidence.gpu_trouble);
}

}  // namespace taas::run
