#include "ui/view/look_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "base/text.hpp"
#include "run/looks/standing.hpp"
#include "ui/text/rank_set.hpp"

namespace taas::ui {
namespace {

constexpr std::size_t kMostFrames = 4;
constexpr std::size_t kMostGroups = 12;

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Duration duration(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

std::string frame_line(const run::SeenFrame& frame, const char* indent, bool whole_path) {
  const auto file = whole_path ? frame.file : base_name(frame.file);
  const auto line = frame.line == 0 ? std::string() : fmt::format(":{}", frame.line);
  return fmt::format("{}{:<24} {}{}\n", indent, printable(frame.function), printable(file), line);
}

/// One rank was asked for, which says nothing of the run.
bool is_about_one(const run::LookReport& report) {
  return report.ranks.size() == 1 && !report.ranks.front().processes.empty();
}

}  // namespace

std::string look_headline(const run::LookReport& report, const Style& style) {
  auto size = plural(report.world_size, "rank");
  if (report.nodes > 1) size += fmt::format(" on {}", plural(report.nodes, "node"));
  std::string state = report.state == "moves" ? style.paint(Paint::kGreen, "moves") : report.state;
  if (report.state == "idle") state = "no rank is running now";
  if (report.state == "stuck") {
    state = style.paint(Paint::kRed, "STUCK") + " for " + run::in_words(duration(report.since_s));
  }
  if (report.state == "waiting") state = style.paint(Paint::kYellow, "ranks wait");
  const auto restarts = report.generation > 0 ? fmt::format(", after {}", plural(report.generation, "restart")) : "";
  const bool one_alone = is_about_one(report);
  return fmt::format("run {}, {}{}{}\n", report.run, size, restarts, one_alone ? "" : ": " + state);
}

namespace {

/// Ranks that do the same at the same place.
struct Group {
  std::vector<Rank> ranks;
  const run::RankReport* first = nullptr;
  bool culprit = false;
};

std::vector<Group> groups_of(const run::LookReport& report) {
  std::map<std::tuple<bool, std::string, std::string, std::string>, Group> groups;
  for (const auto& rank : report.ranks) {
    const bool culprit = std::ranges::find(report.culprits, rank.rank) != report.culprits.end();
    auto& group = groups[{!culprit, rank.activity, rank.doing, rank.place}];
    if (group.first == nullptr) group.first = &rank;
    group.culprit = culprit;
    group.ranks.push_back(rank.rank);
  }
  std::vector<Group> result;
  for (auto& [key, group] : groups) result.push_back(std::move(group));
  std::ranges::stable_sort(result, [](const Group& a, const Group& b) {
    return a.culprit != b.culprit ? a.culprit : a.ranks.size() > b.ranks.size();
  });
  return result;
}

/// What most ranks do at once, said of several.
std::string of_several(const std::string& doing) {
  static const std::map<std::string, std::string> kPlural{
      {"goes on", "go on"}, {"is busy", "are busy"}, {"sleeps", "sleep"}, {"waits", "wait"}};
  const auto known = kPlural.find(doing);
  return known == kPlural.end() ? doing : known->second;
}

std::string describe(const Group& group, const run::LookReport& report, const Style& style) {
  const auto& first = *group.first;
  const bool one = group.ranks.size() == 1;
  auto who = fmt::format("{} {}", one ? "rank" : "ranks", format_rank_set(group.ranks));
  if (group.culprit) who = style.paint(Paint::kBold, who);
  if (one) {
    const auto where = report.nodes > 1 && !first.node.empty() ? fmt::format("{}, ", first.node) : std::string();
    who += fmt::format(" ({}pid {})", where, first.pid);
  }
  auto doing = first.doing.empty() ? std::string("cannot be seen") : first.doing;
  if (!one) doing = of_several(doing);
  const auto place = run::in_place(first.place);
  auto text = fmt::format("  {}{}: {}\n", who, place, doing);
  if (!group.culprit && !one) return text;
  for (std::size_t i = 0; i < first.own_frames.size() && i < kMostFrames; ++i) {
    text += frame_line(first.own_frames[i], "      ", false);
  }
  return text;
}

std::string threads_page(const run::RankReport& rank) {
  std::string text;
  for (const auto& process : rank.processes) {
    text += fmt::format("  process {}{}\n", process.command.empty() ? fmt::format("{}", process.pid) : process.command,
                        process.unread.empty() ? "" : fmt::format(": {}", process.unread));
    std::map<std::string, std::vector<std::string>> alike;  // threads without frames
    for (const auto& thread : process.threads) {
      const auto does = thread.waits_for.empty()             ? std::string("runs")
                        : thread.wait == run::Wait::kStopped ? "is stopped by " + thread.waits_for
                                                             : "waits for " + thread.waits_for;
      if (thread.frames.empty() && thread.tid != process.pid) {
        alike[does].push_back(thread.name);
        continue;
      }
      text += fmt::format("    thread {} ({}){}: {}\n", thread.tid, printable(thread.name),
                          thread.holds_gil ? ", holds the GIL" : "", does);
      for (const auto& frame : thread.frames) text += frame_line(frame, "      ", true);
    }
    for (const auto& [does, names] : alike) {
      text +=
          fmt::format("    {} outside Python: {}\n", plural(static_cast<std::int64_t>(names.size()), "thread"), does);
    }
  }
  return text;
}

std::string next_steps(const run::LookReport& report) {
  const auto is_there = [&](const run::RankReport& rank) { return rank.rank == report.culprits.front(); };
  if (report.culprits.empty() || std::ranges::none_of(report.ranks, is_there)) return {};
  return fmt::format("  next: taas-run look --rank {} shows all of its threads\n", report.culprits.front().value);
}

}  // namespace

std::string look_page(const run::LookReport& report, const Style& style) {
  auto text = look_headline(report, style);
  if (is_about_one(report)) {
    Group only{{report.ranks.front().rank}, &report.ranks.front(), false};
    return text + describe(only, report, style) + threads_page(report.ranks.front());
  }
  const auto groups = groups_of(report);
  const bool shows_whom = std::ranges::any_of(groups, &Group::culprit);  // as below, in more words
  if (!report.text.empty() && !shows_whom) text += fmt::format("  {}\n", report.text);
  for (std::size_t i = 0; i < groups.size() && i < kMostGroups; ++i) text += describe(groups[i], report, style);
  if (groups.size() > kMostGroups)
    text += fmt::format("  and {} more places; --json has all\n", groups.size() - kMostGroups);
  if (!report.ended_well.empty()) {
    text += fmt::format("  {} {} ended well\n", report.ended_well.size() == 1 ? "rank" : "ranks",
                        format_rank_set(report.ended_well));
  }
  if (!report.silent.empty()) text += fmt::format("  no answer in time from {}\n", fmt::join(report.silent, ", "));
  return text + next_steps(report);
}

}  // namespace taas::ui
