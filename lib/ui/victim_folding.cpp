#include "ui/victim_folding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "run/verdict/native_error.hpp"
#include "run/verdict/peer_loss.hpp"
#include "run/verdict/traceback.hpp"
#include "ui/text/rank_set.hpp"

namespace taas::ui {
namespace {

using namespace std::chrono_literals;

constexpr auto kBurst = 1s;      // between two lines of a traceback
constexpr auto kPatience = 10s;  // for the end of the peer that was lost
constexpr std::size_t kMostLines = 1000;

bool begins_traceback(std::string_view text) { return text == "Traceback (most recent call last):"; }

/// Frames are indented; before the first exception of a chain nothing else is not.
bool is_exception(std::string_view text) { return !text.empty() && text.front() != ' '; }

bool is_failure(const run::Event& event) {
  if (const auto* exited = std::get_if<run::RankExited>(&event)) return !exited->status.success();
  return std::holds_alternative<run::RankSpawnFailed>(event) || std::holds_alternative<run::NodeLost>(event);
}

/// That is torch's to say, and no wait in vain: that is told in full.
bool tells_of_lost_peer(std::string_view text) {
  const bool by_torch = text.starts_with("RuntimeError: ") || text.starts_with("torch.");
  return by_torch && run::tells_of_lost_peer(text) && !run::tells_of_timeout(text);
}

/// How many of the first lines are the traceback of a lost peer, with those that it led to; 0: one of them says more.
/// Any line may be one more of its message, or something else that the rank says.
std::size_t length_of_loss(const std::vector<std::string>& lines) {
  std::size_t end = 0;
  for (const auto& traceback : run::find_tracebacks(lines)) {
    if (end > 0 && !traceback.continues) break;
    if (!tells_of_lost_peer(traceback.raised)) return 0;
    end = traceback.end - traceback.message.size();
    while (end < lines.size() && run::says_nothing(lines[end])) ++end;
  }
  return end;
}

/// Takes the loss out of what the rank said, and what an abort has printed after it. Returns how many lines that were.
std::size_t take_out_loss(std::vector<OutputLine>& lines) {
  std::vector<std::string> texts;
  for (const auto& line : lines) texts.push_back(line.text);
  const auto end = length_of_loss(texts);
  if (end == 0) return 0;
  const auto all = lines.size();
  const auto after = lines.begin() + static_cast<std::ptrdiff_t>(end);
  lines.erase(std::find_if(after, lines.end(), [](const auto& line) { return run::starts_native_error(line.text); }),
              lines.end());
  lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(end));
  return all - lines.size();
}

}  // namespace

void VictimFolding::show(const Event& event) {
  if (const auto* line = std::get_if<OutputLine>(&event)) return take(*line);
  if (const auto* happened = std::get_if<RunEvent>(&event)) {
    if (const auto* gathered = std::get_if<run::NodesGathered>(&happened->event)) shown_.update(*gathered);
    failed_ |= is_failure(happened->event);
  }
  if (const auto* decided = std::get_if<RunAction>(&event)) {
    if (const auto* failure = std::get_if<run::ReportFailure>(&decided->action)) judge(failure->verdict);
    if (const auto* finish = std::get_if<run::Finish>(&decided->action)) judge(finish->verdict);
  }
  then_->show(event);
}

void VictimFolding::take(const OutputLine& line) {
  auto held = held_.find(line.rank);
  const auto text = run::without_rank_prefix(line.text);
  if (held == held_.end()) {
    const bool may_be = line.stream == Stream::kStderr && !line.open && begins_traceback(text) && shown_.shows(line);
    if (!may_be) return then_->show(line);
    held_.emplace(line.rank, Held{{line}});
    return;
  }
  if (line.stream == Stream::kStdout) return then_->show(line);
  held->second.lines.push_back(line);
  if (held->second.lines.size() > kMostLines) return release(line.rank);
  if (held->second.lost_peer || line.open || !is_exception(text)) return;
  if (!tells_of_lost_peer(text)) return release(line.rank);
  held->second.lost_peer = true;
}

std::optional<Instant> VictimFolding::due(const Held& held) const {
  const auto last = held.lines.back().at;
  if (!held.lost_peer) return last + kBurst;
  return failed_ ? std::nullopt : std::optional(last + kPatience);
}

std::optional<Instant> VictimFolding::next_deadline() const {
  auto next = then_->next_deadline();
  for (const auto& [rank, held] : held_) {
    auto end = due(held);
    if (end && (!next || *end < *next)) next = end;
  }
  return next;
}

void VictimFolding::tick(Instant now) {
  std::vector<Rank> overdue;
  for (const auto& [rank, held] : held_) {
    if (auto end = due(held); end && *end <= now) overdue.push_back(rank);
  }
  for (Rank rank : overdue) release(rank);
  then_->tick(now);
}

void VictimFolding::finish() {
  release_all();
  then_->finish();
}

void VictimFolding::release(Rank rank) {
  auto held = held_.extract(rank);
  for (auto& line : held.mapped().lines) then_->show(std::move(line));
}

void VictimFolding::release_all() {
  while (!held_.empty()) release(held_.begin()->first);
}

/// Who is to blame keeps its traceback, and so does everybody where nobody else is.
void VictimFolding::judge(const run::Verdict& verdict) {
  failed_ = false;
  const bool others = verdict.culprit.value >= 0 || verdict.cause == run::Cause::kNodeLost;
  std::vector<Rank> victims;
  std::size_t most = 0;
  Instant at{};
  for (auto& [rank, held] : held_) {
    if (!others || !held.lost_peer || rank == verdict.culprit) continue;
    at = std::max(at, held.lines.back().at);
    const auto lines = take_out_loss(held.lines);
    if (lines > 0) victims.push_back(rank);
    most = std::max(most, lines);
  }
  if (!victims.empty()) {
    const auto text =
        victims.size() == 1
            ? fmt::format("rank {}: lost its peer ({} lines in its log)", victims.front().value, most)
            : fmt::format("ranks {}: lost a peer (up to {} lines in their logs)", format_rank_set(victims), most);
    then_->show(Message{Message::Level::kInfo, text, at});
  }
  release_all();
}

}  // namespace taas::ui
