#include "run/looks/phases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "base/text.hpp"
#include "run/looks/standing.hpp"

namespace taas::run {
namespace {

/// "torch" of ".../site-packages/torch/__init__.py", "helper" of "/home/me/helper.py".
std::string package_of(std::string_view file) {
  for (std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    const auto at = file.find(folder);
    if (at == file.npos) continue;
    const auto name = file.substr(at + folder.size());
    return std::string(name.substr(0, name.find_first_of("/.")));
  }
  const auto base = file.substr(file.rfind('/') + 1);
  if (base != "__init__.py") return std::string(base.substr(0, base.find('.')));
  const auto folder = file.substr(0, file.size() - base.size() - 1);
  return std::string(folder.substr(folder.rfind('/') + 1));
}

bool names(const SeenFrame& frame, std::string_view word) {
  std::string lower = frame.function.substr(frame.function.rfind('.') + 1);
  std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  return contains(lower, word);
}

bool any_function_has(const std::vector<SeenFrame>& frames, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(frames, [&](const SeenFrame& frame) {
    return std::ranges::any_of(words, [&](std::string_view word) { return names(frame, word); });
  });
}

bool any_file_has(const std::vector<SeenFrame>& frames, std::string_view part) {
  return std::ranges::any_of(frames, [&](const SeenFrame& frame) { return contains(frame.file, part); });
}

/// The module that the program asked for, not one that this one needs: the outermost that is being run.
std::string importing(const std::vector<SeenFrame>& frames) {
  if (!any_file_has(frames, "<frozen importlib")) return {};
  const auto own = std::ranges::find_if(frames, [](const SeenFrame& frame) { return is_own_file(frame.file); });
  std::string name;
  for (auto frame = frames.begin(); frame != own; ++frame) {
    if (frame->function == "<module>") name = package_of(frame->file);
  }
  return name.empty() ? "importing" : "importing " + name;
}

}  // namespace

std::string phase_of(const RankLook& look, bool joined) {
  if (look.processes.empty() || look.processes.front().threads.empty()) return "running";
  const auto& main = look.processes.front().threads.front();
  if (main.wait == Wait::kStopped) return "stopped";
  const auto& frames = main.frames;
  if (auto what = importing(frames); !what.empty()) return what;
  if (!joined) return any_file_has(frames, "/torch/distributed/") ? "joining" : "running";
  std::vector<SeenFrame> own;
  std::ranges::copy_if(frames, std::back_inserter(own), [](const SeenFrame& frame) { return is_own_file(frame.file); });
  if (any_function_has(own, {"save", "checkpoint", "ckpt"}) || any_file_has(frames, "/torch/serialization.py"))
    return "saving";
  if (any_function_has(own, {"eval", "valid"})) return "evaluating";
  if (any_file_has(frames, "/torch/utils/data/") || any_file_has(frames, "/taas/delivery/")) return "loading data";
  return own.empty() ? "running" : "training";
}

std::string rate_in_words(double rate) {
  if (rate >= 100) return fmt::format("{:.0f}", rate);
  return rate >= 0.1 ? fmt::format("{:.1f}", rate) : fmt::format("{:.2g}", rate);
}

double usual_step_rate(const std::vector<RankReport>& ranks) {
  std::vector<double> rates;
  for (const auto& rank : ranks) {
    if (rank.steps > 0) rates.push_back(rank.steps_per_s);
  }
  if (rates.empty()) return 0;
  std::ranges::sort(rates);
  return rates[rates.size() / 2];
}

RunPhase phase_of_run(const std::vector<RankReport>& ranks) {
  std::map<std::string, std::vector<const RankReport*>> by_phase;
  for (const auto& rank : ranks) {
    if (!rank.phase.empty()) by_phase[rank.phase].push_back(&rank);
  }
  if (by_phase.empty()) return {};
  const auto& [name, most] = *std::ranges::max_element(by_phase, {}, [](const auto& one) { return one.second.size(); });
  RunPhase phase{name, {}, name.starts_with("importing") || name == "joining"};
  const auto& place = most.front()->line;
  const bool one_place = std::ranges::all_of(most, [&](const RankReport* rank) { return rank->line == place; });
  if (one_place && !place.empty() && !name.starts_with("importing")) phase.rest += " at " + place;
  if (most.size() < ranks.size())
    phase.rest += fmt::format(" ({} of {})", most.size(), plural(static_cast<std::int64_t>(ranks.size()), "rank"));
  const auto usual = usual_step_rate(ranks);
  if (usual <= 0) return phase;
  phase.rest += fmt::format(", {} steps/s", rate_in_words(usual));
  const RankReport* slowest = nullptr;
  for (const auto& rank : ranks) {
    const bool slower = rank.steps > 0 && (slowest == nullptr || rank.steps_per_s < slowest->steps_per_s);
    if (slower) slowest = &rank;
  }
  if (slowest->steps_per_s < kStraggles * usual) {
    phase.rest += fmt::format(", rank {} {}", slowest->rank.value, rate_in_words(slowest->steps_per_s));
  }
  return phase;
}

}  // namespace taas::run
