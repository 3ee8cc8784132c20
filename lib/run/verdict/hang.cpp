#include "run/verdict/hang.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "run/events/words.hpp"

namespace taas::run {
namespace {

constexpr std::size_t kMostCulpritsExplained = 3;

/// "1 MB", "4 KB", "1.5 GB".
std::string size_text(std::int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KB", "MB", "GB", "TB"};
  auto size = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; size >= 1024 && unit + 1 < kUnits.size(); ++unit) size /= 1024;
  return fmt::format("{:.3g} {}", size, kUnits[unit]);
}

std::string with_where(std::string what, const CollectiveCall& call) {
  std::vector<std::string> parts;
  if (!what.empty()) parts.push_back(std::move(what));
  if (!call.where.empty()) parts.push_back(call.where);
  return parts.empty() ? std::string() : fmt::format(" ({})", fmt::join(parts, ", "));
}

/// "all_reduce 16 (1 MB float32, train.py:31)".
std::string describe_call(const CollectiveCall& call) {
  auto size = call.shape.empty() ? std::string() : size_text(call.bytes);
  if (!call.dtype.empty()) size += " " + call.dtype;
  return fmt::format("{} {}{}", call.operation, call.number, with_where(std::move(size), call));
}

/// What has to be the same on all ranks, beside the operation. Not all operations say what they want of the others.
std::string_view common_shape(const CollectiveCall& call) {
  constexpr std::array<std::string_view, 4> kAlike{"all_reduce", "broadcast", "reduce", "all_gather"};
  bool alike = std::ranges::find(kAlike, call.operation) != kAlike.end();
  return alike ? std::string_view(call.shape) : std::string_view();
}

bool matches(const CollectiveCall& one, const CollectiveCall& other) {
  return one.operation == other.operation && common_shape(one) == common_shape(other);
}

/// One group, over all ranks that have left a record of it.
class GroupView {
 public:
  GroupView(std::string name, const GenerationRecord& generation) : name_(std::move(name)) {
    std::vector<int> members;
    for (std::size_t i = 0; i < generation.ranks().size(); ++i) {
      const auto& groups = generation.ranks()[i].evidence.collectives;
      auto group = std::ranges::find(groups, name_, &CollectiveGroup::name);
      if (group == groups.end() || group->calls.empty()) continue;
      calls_[Rank{static_cast<int>(i)}] = &group->calls;
      if (!group->members.empty()) members = group->members;
    }
    for (int member : members) {
      if (member < static_cast<int>(generation.ranks().size())) members_.push_back(Rank{member});
    }
    if (!members.empty()) return;
    for (std::size_t i = 0; i < generation.ranks().size(); ++i) members_.push_back(Rank{static_cast<int>(i)});
  }

  [[nodiscard]] const std::vector<Rank>& members() const { return members_; }

  /// The furthest of the calls that ranks have not got out of.
  [[nodiscard]] const CollectiveCall* stuck() const {
    const CollectiveCall* furthest = nullptr;
    for (const auto& entry : calls_) {
      const auto& calls = *entry.second;
      auto pending = std::ranges::find_if(calls, [&](const CollectiveCall& call) { return !is_over(call, calls); });
      if (pending == calls.end()) continue;
      if (furthest == nullptr || pending->number > furthest->number) furthest = &*pending;
    }
    return furthest;
  }

  /// A rank's call of that number; null: it has not come so far, or nothing is known of it.
  [[nodiscard]] const CollectiveCall* call(Rank rank, std::int64_t number) const {
    auto found = calls_.find(rank);
    if (found == calls_.end()) return nullptr;
    auto call = std::ranges::find(*found->second, number, &CollectiveCall::number);
    return call == found->second->end() ? nullptr : &*call;
  }

  /// Its record tells which calls its GPU has begun.
  [[nodiscard]] bool tells_of_starts(Rank rank) const {
    auto found = calls_.find(rank);
    return found != calls_.end() && std::ranges::any_of(*found->second, &CollectiveCall::started);
  }

  [[nodiscard]] const CollectiveCall* last(Rank rank) const {
    auto found = calls_.find(rank);
    return found == calls_.end() ? nullptr : &found->second->back();
  }

 private:
  /// gloo's calls block: all but the last one are over.
  static bool is_over(const CollectiveCall& call, const std::vector<CollectiveCall>& calls) {
    return call.completed || (call.blocking && call.number != calls.back().number);
  }

  std::string name_;
  std::vector<Rank> members_;
  std::map<Rank, const std::vector<CollectiveCall>*> calls_;
};

std::string waited(const CollectiveCall& call) {
  return call.timeout_ms == 0 ? "waited" : fmt::format("waited {:.3g} s", static_cast<double>(call.timeout_ms) / 1000);
}

std::vector<std::string> explain(const GroupView& group, const std::vector<Rank>& missing) {
  std::vector<std::string> lines;
  for (Rank rank : missing) {
    if (lines.size() == kMostCulpritsExplained) break;
    const auto* last = group.last(rank);
    lines.push_back(last == nullptr ? fmt::format("rank {} has left no record of its calls", rank.value)
                                    : fmt::format("rank {} last called {}", rank.value, describe_call(*last)));
  }
  return lines;
}

/// Who is not where most of the others are.
struct Sides {
  std::vector<Rank> there;    // made the same call
  std::vector<Rank> missing;  // had not come so far
  std::vector<Rank> differ;   // made another one
};

Sides sides_of(const GroupView& group, const CollectiveCall& stuck) {
  Sides sides;
  for (Rank rank : group.members()) {
    const auto* last = group.last(rank);
    const auto* same = group.call(rank, stuck.number);
    if (same == nullptr && last != nullptr && last->number > stuck.number) continue;  // its record begins later
    if (same == nullptr) {
      sides.missing.push_back(rank);
    } else {
      (matches(*same, stuck) ? sides.there : sides.differ).push_back(rank);
    }
  }
  if (sides.differ.size() > sides.there.size()) std::swap(sides.differ, sides.there);
  // Of whom nothing is known is blamed only where nobody else can be.
  auto known = [&](Rank rank) { return group.last(rank) != nullptr; };
  if (std::ranges::any_of(sides.missing, known)) std::erase_if(sides.missing, std::not_fn(known));
  return sides;
}

std::string names(const std::vector<Rank>& ranks, const Policy& policy) {
  return name_ranks(ranks, policy.node_of_rank, policy.node_names);
}

Hang differing(const GroupView& group, const Sides& sides, std::int64_t number, const Policy& policy) {
  const auto& odd = *group.call(sides.differ.front(), number);
  const auto& usual = *group.call(sides.there.front(), number);
  Hang hang{sides.differ, {}, {}};
  hang.summary =
      odd.operation == usual.operation
          ? fmt::format("{} called {} {} with {}{}, {} with {}{}", names(sides.differ, policy), odd.operation, number,
                        odd.shape, with_where({}, odd), names(sides.there, policy), usual.shape, with_where({}, usual))
          : fmt::format("{} called {}, where {} called {}", names(sides.differ, policy), describe_call(odd),
                        names(sides.there, policy), describe_call(usual));
  return hang;
}

/// All have called it. Ranks whose GPU has not begun it hold up those whose GPU has.
std::optional<Hang> not_begun(const GroupView& group, const std::vector<Rank>& there, const CollectiveCall& stuck,
                              const Policy& policy) {
  std::vector<Rank> begun;
  std::vector<Rank> held_up;
  for (Rank rank : there) {
    if (!group.tells_of_starts(rank)) return std::nullopt;
    (group.call(rank, stuck.number)->started ? begun : held_up).push_back(rank);
  }
  if (begun.empty() || held_up.empty()) return std::nullopt;
  return Hang{held_up,
              fmt::format("{} called {}, but the GPU did not begin it: {} {}", names(held_up, policy),
                          describe_call(stuck), names(begun, policy), waited(stuck)),
              {"what the GPU had been given before it was not done"}};
}

std::optional<Hang> hang_of(const GroupView& group, const Policy& policy) {
  const auto* stuck = group.stuck();
  if (stuck == nullptr) return std::nullopt;
  auto sides = sides_of(group, *stuck);
  if (!sides.differ.empty()) return differing(group, sides, stuck->number, policy);
  if (sides.missing.empty()) return not_begun(group, sides.there, *stuck, policy);
  if (sides.there.empty()) return std::nullopt;
  return Hang{sides.missing,
              fmt::format("{} did not come to {}: {} {}", names(sides.missing, policy), describe_call(*stuck),
                          names(sides.there, policy), waited(*stuck)),
              explain(group, sides.missing)};
}

std::vector<std::string> group_names(const GenerationRecord& generation) {
  std::vector<std::string> names;
  for (const auto& record : generation.ranks()) {
    for (const auto& group : record.evidence.collectives) {
      if (std::ranges::find(names, group.name) == names.end()) names.push_back(group.name);
    }
  }
  return names;
}

}  // namespace

std::optional<Hang> find_hang(const GenerationRecord& generation, const Policy& policy) {
  for (auto& name : group_names(generation)) {
    if (auto hang = hang_of(GroupView(std::move(name), generation), policy)) return hang;
  }
  return std::nullopt;
}

}  // namespace taas::run
