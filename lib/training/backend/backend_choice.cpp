#include "training/backend/backend_choice.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "taas/error.hpp"

namespace taas {
namespace {

constexpr std::array<std::string_view, 3> kWishes{"auto", "gloo", "nccl"};  // by Backend
constexpr char kSeparator = '\t';

std::string rank_text(std::size_t rank) { return "rank " + std::to_string(rank); }

std::optional<std::size_t> first_with(const std::vector<BackendOffer>& offers, Backend wish) {
  auto found = std::ranges::find(offers, wish, &BackendOffer::wish);
  if (found == offers.end()) return std::nullopt;
  return static_cast<std::size_t>(found - offers.begin());
}

/// Why these ranks cannot use nccl; empty: they can.
std::string obstacle(const std::vector<BackendOffer>& offers) {
  std::map<std::string, std::size_t> owners;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    const auto& [wish, gpu, problem] = offers[rank];
    if (gpu.empty()) return rank_text(rank) + " has no GPU" + (problem.empty() ? "" : ": " + problem);
    auto [owner, first] = owners.emplace(gpu, rank);
    if (!first) {
      return "ranks " + std::to_string(owner->second) + " and " + std::to_string(rank) + " have the same GPU, " + gpu +
             ": give each its own, or let them share it with taas-run --oversubscribe";
    }
  }
  return {};
}

bool knows_gpus(const BackendOffer& offer) { return !offer.gpu.empty() || !offer.problem.empty(); }

}  // namespace

std::string print_offer(const BackendOffer& offer) {
  const std::string wish(kWishes[static_cast<std::size_t>(offer.wish)]);
  return wish + kSeparator + offer.gpu + kSeparator + offer.problem;
}

BackendOffer parse_offer(const std::string& text) {
  const auto first = text.find(kSeparator), second = text.find(kSeparator, first + 1);
  const auto wish = std::ranges::find(kWishes, std::string_view(text).substr(0, first));
  if (first == text.npos || second == text.npos || wish == kWishes.end()) {
    throw ConfigError("a rank does not speak as this libtaas does: use the same release on all nodes");
  }
  return {static_cast<Backend>(wish - kWishes.begin()), text.substr(first + 1, second - first - 1),
          text.substr(second + 1)};
}

BackendChoice choose_backend(const std::vector<BackendOffer>& offers) {
  auto nccl = first_with(offers, Backend::kNccl);
  auto gloo = first_with(offers, Backend::kGloo);
  if (nccl && gloo) {
    throw ConfigError(rank_text(*nccl) + " asks for nccl but " + rank_text(*gloo) + " asks for gloo");
  }
  if (gloo) return {};
  auto problem = obstacle(offers);
  if (nccl && !problem.empty()) throw ConfigError(rank_text(*nccl) + " asks for nccl but " + problem);
  if (problem.empty()) return {.nccl = true, .reason = {}};
  return {.nccl = false, .reason = std::ranges::any_of(offers, knows_gpus) ? problem : ""};
}

int gpu_index(int local_rank, int visible, int devices_per_rank) {
  if (visible == 0) return -1;
  if (visible <= devices_per_rank) return 0;
  const auto first = std::int64_t{local_rank} * devices_per_rank;
  return first < visible ? static_cast<int>(first) : -1;
}

}  // namespace taas
