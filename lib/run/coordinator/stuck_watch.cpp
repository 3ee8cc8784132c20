#include "run/coordinator/stuck_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "run/events/timers.hpp"

namespace taas::run {
namespace {

constexpr Duration kBetweenLooks = std::chrono::seconds(5);
constexpr Duration kShortly = std::chrono::milliseconds(300);  // the same, where that cannot be waited for
constexpr Duration kPatience = std::chrono::seconds(3);        // for answers
constexpr Duration kFirstPause =
    std::chrono::seconds(10);  // after two looks; doubled while ranks are still and all is well
constexpr Duration kLongestPause = std::chrono::minutes(5);
const RunPhase kStuckPhase{"nothing moves", {}, true};
constexpr Duration kFirstPhase = std::chrono::seconds(2);      // after the nodes were gathered
constexpr Duration kStartingPhases = std::chrono::seconds(3);  // until all ranks have joined
constexpr Duration kPhases = std::chrono::seconds(20);
constexpr Duration kWhileStuck = std::chrono::seconds(10);
constexpr Duration kStandsFor = std::chrono::seconds(15);  // without movement: then it is told
constexpr Duration kWaitsFor = std::chrono::seconds(20);   // for somebody who is busy: then it is told
constexpr Duration kTellAgain = std::chrono::minutes(30);
constexpr Duration kHolds = std::chrono::minutes(2);  // what was found last, at the end of a run

}  // namespace

void StuckWatch::begin(const NodesGathered& event) {
  policy_.node_of_rank = event.node_of_rank;
  policy_.node_names = event.node_names;
  active_ = true;
  joined_.clear();
  living_.clear();
  ended_well_.clear();
  still_.clear();
  data_wait_.clear();
  std::erase_if(pairs_, [](const Pair& pair) { return pair.reason != Reason::kSomebody; });
  check_at_.reset();
  phase_at_.reset();
  if (tells_phases_) phase_at_ = decisions_.now() + kFirstPhase;
  pause_ = kFirstPause;
  told_stuck_.reset();
  told_.clear();
  last_.clear();
}

void StuckWatch::end() {
  active_ = false;
  std::erase_if(pairs_, [](const Pair& pair) { return pair.reason != Reason::kSomebody; });
  check_at_.reset();
  phase_at_.reset();
}

void StuckWatch::see(const Event& event) {
  if (const auto* gathered = std::get_if<NodesGathered>(&event)) return begin(*gathered);
  if (const auto* spawned = std::get_if<RankSpawned>(&event)) living_[spawned->rank] = spawned->pid;
  if (const auto* joined = std::get_if<RankJoined>(&event)) joined_.insert(joined->rank);
  const auto* exited = std::get_if<RankExited>(&event);
  if (exited == nullptr || living_.erase(exited->rank) == 0) return;
  still_.erase(exited->rank);
  if (exited->status.success()) ended_well_.push_back(exited->rank);
}

void StuckWatch::on(AgentId agent, const RankMotion& message) {
  if (!active_ || !members_.owns(agent, message.generation, message.rank) || !living_.contains(message.rank)) return;
  if (message.moves) {
    still_.erase(message.rank);
    if (told_stuck_) check_at_ = decisions_.now();
    return;
  }
  still_.insert_or_assign(message.rank, message.at);
  if (!check_at_ && !looks_for(Reason::kStillness)) check_at_ = decisions_.now();
}

/// The rank that stopped last: since then nothing moves, if all have stopped.
Instant StuckWatch::still_since() const {
  Instant since{};
  for (const auto& [rank, at] : still_) since = std::max(since, at);
  return still_.empty() ? decisions_.now() : since;
}

std::optional<Instant> StuckWatch::next_check() const {
  auto next = earliest({check_at_, phase_at_});
  for (const auto& pair : pairs_) {
    const auto given_up = pair.under_way ? std::optional(pair.now.asked + kPatience) : std::nullopt;
    next = earliest({next, pair.second_at, given_up});
  }
  return next;
}

void StuckWatch::check() {
  const auto now = decisions_.now();
  for (auto& pair : pairs_) {
    if (pair.under_way && now >= pair.now.asked + kPatience) advance(pair);
    if (take_due(pair.second_at, now)) ask(pair);
  }
  std::erase_if(pairs_, [this](Pair& pair) { return finish(pair); });
  if (take_due(phase_at_, now)) {
    phase_at_ = now + (joined_.size() < living_.size() ? kStartingPhases : kPhases);
    if (!living_.empty() && !looks_for(Reason::kPhase)) start(Reason::kPhase);
  }
  if (!take_due(check_at_, now)) return;
  if (still_.empty()) {
    pause_ = kFirstPause;
    return moves_again();
  }
  start(Reason::kStillness);
}

bool StuckWatch::looks_for(Reason reason) const {
  return std::ranges::any_of(pairs_, [=](const Pair& pair) { return pair.reason == reason; });
}

void StuckWatch::start(Reason reason, const LookAsked& asked_by) {
  auto& pair = pairs_.emplace_back();
  pair.reason = reason;
  pair.asked_by = asked_by;
  ask(pair);
}

void StuckWatch::look_before_the_end() {
  if (active_ && !living_.empty() && !looks_for(Reason::kTheEnd)) start(Reason::kTheEnd);
}

void StuckWatch::on(const LookAsked& event) {
  start(Reason::kSomebody, event);
  if (!pairs_.back().now.unheard.empty()) return;
  answer(pairs_.back());  // there is nobody to look at
  pairs_.pop_back();
}

void StuckWatch::on(const DataProgress& message) {
  if (message.seconds > 0) data_wait_[message.rank] = message.waited / message.seconds;
}

void StuckWatch::ask(Pair& pair) {
  pair.number = ++number_;
  pair.now = {{}, decisions_.now(), {}, {}};
  pair.under_way = true;
  const int only = pair.asked_by.rank;
  for (const auto& [rank, pid] : living_) {
    const bool wanted = only < 0 || rank.value == only;
    if (wanted) pair.now.unheard.insert(members_.agent_of_rank().at(static_cast<std::size_t>(rank.value)));
  }
  for (const auto& [agent, known] : agents_.all()) {
    if (only < 0 && !living_.empty() && machines_.has(agent)) pair.now.unheard.insert(agent);
  }
  const bool gpus = pair.reason == Reason::kSomebody && pair.before;  // once for both looks
  const bool native = pair.reason != Reason::kPhase;  // what most programs are about is told without
  for (AgentId agent : pair.now.unheard)
    agents_.send(agent, LookAtRanks{members_.generation(), pair.number, only, gpus, native});
}

void StuckWatch::on(AgentId agent, const RanksSeen& message) {
  auto pair =
      std::ranges::find_if(pairs_, [&](const Pair& one) { return one.under_way && one.number == message.number; });
  if (pair == pairs_.end() || message.generation != members_.generation()) return;
  for (const auto& look : message.looks) {
    const bool worker = !look.data_worker.empty() && (members_.contains(agent) || machines_.has(agent));
    if (worker) pair->now.data_workers.insert_or_assign(look.data_worker, look);
    if (members_.owns(agent, message.generation, look.rank)) pair->now.seen.insert_or_assign(look.rank, look);
  }
  pair->now.unheard.erase(agent);
  if (!pair->now.unheard.empty()) return;
  advance(*pair);
  if (finish(*pair)) pairs_.erase(pair);
}

/// The look that was under way is there, as far as it will ever be.
void StuckWatch::advance(Pair& pair) {
  pair.under_way = false;
  if (pair.before || pair.reason == Reason::kPhase) return;
  pair.before = std::move(pair.now);
  pair.second_at = decisions_.now() + (pair.reason == Reason::kStillness ? kBetweenLooks : kShortly);
}

/// True when both looks are there: then they have been used.
bool StuckWatch::finish(Pair& pair) {
  if (pair.under_way || pair.second_at) return false;
  if (pair.reason == Reason::kPhase) return tell_phase(pair), true;
  if (!pair.before) return false;
  if (pair.reason == Reason::kSomebody) answer(pair);
  if (pair.reason == Reason::kStillness) conclude(pair);
  if (pair.reason == Reason::kTheEnd) remember(judge_all(pair));
  return true;
}

std::vector<RankStanding> StuckWatch::judge_all(const Pair& pair) const {
  std::vector<RankStanding> standings;
  for (const auto& [rank, now] : pair.now.seen) {
    const auto before = pair.before->seen.find(rank);
    if (before != pair.before->seen.end() && living_.contains(rank)) standings.push_back(judge(before->second, now));
  }
  std::vector<WorkerStanding> workers;
  for (const auto& [name, now] : pair.now.data_workers) {
    const auto before = pair.before->data_workers.find(name);
    if (before == pair.before->data_workers.end()) continue;
    if (auto one = judge_data_worker(before->second, now)) workers.push_back(std::move(*one));
  }
  explain_wait_for_data(standings, workers);
  return standings;
}

void StuckWatch::remember(const std::vector<RankStanding>& standings) {
  last_.clear();
  for (const auto& one : standings) last_.insert_or_assign(one.rank, one);
  last_at_ = decisions_.now();
}

void StuckWatch::conclude(const Pair& pair) {
  const auto standings = judge_all(pair);
  remember(standings);
  const bool all_seen = standings.size() == living_.size();
  const auto standing = all_seen ? assess(standings, ended_well_, !joined_.empty(), policy_) : Standing{};
  if (standing.kind == Standing::Kind::kMoves) {
    if (!still_.empty()) check_at_ = decisions_.now() + pause_;
    pause_ = std::min(2 * pause_, kLongestPause);
    return moves_again();
  }
  tell(standing);
  check_at_ = decisions_.now() + kWhileStuck;
  if (standing.kind == Standing::Kind::kStuck) mind_hang_timeout(standing);
}

/// The next look comes so that its answer is there when the time is over.
void StuckWatch::mind_hang_timeout(const Standing& standing) {
  const auto now = decisions_.now();
  if (hang_timeout_ == Duration{} || !told_stuck_) return;
  const auto over = *told_stuck_ + hang_timeout_;
  if (now >= over) {
    return decisions_.report(RanksStuck{members_.generation(), standing.culprits, standing.text(), *told_stuck_, now});
  }
  check_at_ = std::min(*check_at_, std::max(over - kBetweenLooks, now));
}

/// Each finding once, and again where it lasts.
void StuckWatch::tell(const Standing& standing) {
  const auto now = decisions_.now();
  const bool stuck = standing.kind == Standing::Kind::kStuck;
  const auto since = still_since();
  if (now - since < (stuck ? kStandsFor : kWaitsFor)) return;
  const auto before = told_.find(standing.key);
  if (before != told_.end() && now - before->second < kTellAgain) return;
  told_.insert_or_assign(standing.key, now);
  if (!stuck) return decisions_.notify(standing.text(now - since));
  if (!told_stuck_) told_stuck_ = since;
  if (tells_phases_) decisions_.emit(PhaseSeen{kStuckPhase});
  decisions_.notify(fmt::format("nothing has moved for {}: {}", in_words(now - since), standing.text()));
}

void StuckWatch::moves_again() {
  if (!told_stuck_) return;
  decisions_.notify(fmt::format("moving again after {}", in_words(decisions_.now() - *told_stuck_)));
  told_stuck_.reset();
  told_.clear();
  if (phase_at_) phase_at_ = decisions_.now();
}

std::string StuckWatch::last_seen(Rank rank) const {
  const auto found = last_.find(rank);
  if (found == last_.end() || decisions_.now() - last_at_ > kHolds) return {};
  return fmt::format("{}{}, which {}", name_many({rank}, policy_), in_place(found->second.place), found->second.doing);
}

void StuckWatch::answer(const Pair& pair) { decisions_.emit(LookReady{pair.asked_by.client, report(pair)}); }

LookReport StuckWatch::report(const Pair& pair) const {
  LookReport report;
  report.generation = members_.generation().value;
  report.world_size = static_cast<int>(policy_.node_of_rank.size());
  report.nodes = policy_.node_of_rank.empty() ? 0 : policy_.node_of_rank.back().value + 1;
  report.ended_well = ended_well_;
  for (AgentId agent : pair.now.unheard) {
    if (agents_.contains(agent)) report.silent.push_back(name_of(agents_.at(agent).hello));
  }
  report.state = living_.empty() ? "idle" : "moves";
  if (living_.empty()) return report;
  const auto standings = pair.before ? judge_all(pair) : std::vector<RankStanding>();
  const auto standing = assess(standings, ended_well_, !joined_.empty(), policy_);
  const bool whole = pair.asked_by.rank < 0 && standings.size() == living_.size();
  if (whole && standing.kind != Standing::Kind::kMoves) {
    const bool stuck = standing.kind == Standing::Kind::kStuck && !still_.empty();
    report.state = stuck ? "stuck" : "waiting";
    report.since_s = still_.empty() ? 0 : seconds(decisions_.now() - still_since());
    report.text = standing.text();
    report.culprits = standing.culprits;
  }
  for (const auto& [rank, pid] : living_) {
    if (pair.asked_by.rank < 0 || rank.value == pair.asked_by.rank) report.ranks.push_back(report_of(rank, pair));
  }
  for (auto& one : report.ranks) {
    const auto found = std::ranges::find(standings, one.rank, &RankStanding::rank);
    if (found == standings.end()) continue;
    constexpr std::array<const char*, 4> kNames{"busy", "waits", "blocked", "purposely"};
    one.activity = kNames.at(static_cast<std::size_t>(found->activity));
    one.doing = found->doing;
    one.place = found->place;
    one.own_frames = found->own_frames;
  }
  return report;
}

RankReport StuckWatch::report_of(Rank rank, const Pair& pair) const {
  RankReport report;
  report.rank = rank;
  report.pid = living_.at(rank);
  const auto node = static_cast<std::size_t>(policy_.node_of_rank.at(static_cast<std::size_t>(rank.value)).value);
  if (node < policy_.node_names.size()) report.node = policy_.node_names[node];
  const auto still = still_.find(rank);
  if (still != still_.end()) report.still_s = seconds(decisions_.now() - still->second);
  const auto seen = pair.now.seen.find(rank);
  if (seen != pair.now.seen.end()) {
    const auto before = pair.before ? pair.before->seen.find(rank) : pair.now.seen.end();
    const bool both = pair.before && before != pair.before->seen.end();
    add_measures(report, seen->second, both ? &before->second : nullptr);
  }
  if (pair.asked_by.rank >= 0 && seen != pair.now.seen.end()) report.processes = seen->second.processes;
  return report;
}

/// A rate of a program that has stopped counting is that of another time.
void StuckWatch::add_measures(RankReport& report, const RankLook& now, const RankLook* before) const {
  constexpr double kLate = 10;  // times as long as a step takes
  report.phase = phase_of(now, joined_.contains(report.rank));
  report.line = judge(now, now).line;
  report.memory_bytes = now.memory_bytes;
  if (const auto wait = data_wait_.find(report.rank); wait != data_wait_.end()) report.data_wait = wait->second;
  report.gpu_percent = now.gpu_percent;
  report.gpu_bytes = now.gpu_bytes;
  report.steps = now.steps;
  if (now.steps > 0) {
    report.since_step_s = seconds(now.at - now.step_at);
    report.steps_per_s = report.since_step_s * now.step_rate < kLate ? now.step_rate : 0;
  }
  const double passed = before != nullptr ? seconds(now.at - before->at) : 0;
  if (passed > 0 && now.cpu_ns > before->cpu_ns) {
    report.cpu = static_cast<double>(now.cpu_ns - before->cpu_ns) / 1e9 / passed;
  }
}

void StuckWatch::tell_phase(const Pair& pair) {
  std::vector<RankReport> ranks;
  for (const auto& [rank, pid] : living_) ranks.push_back(report_of(rank, pair));
  auto phase = phase_of_run(ranks);
  if (told_stuck_) phase = kStuckPhase;
  if (!phase.name.empty()) decisions_.emit(PhaseSeen{std::move(phase)});
}

}  // namespace taas::run
