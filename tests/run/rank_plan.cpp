#include "rank_plan.hpp"

#include <cerrno>
#include <csignal>

namespace taas::run {
namespace {

using namespace std::chrono_literals;

RankPlan::Fate draw_failure(Random& random) {
  switch (random.between(0, 9)) {
    case 0:
      return RankPlan::Fate::kCannotStart;
    case 1:
    case 2:
    case 3:
      return RankPlan::Fate::kExits;
    case 4:
    case 5:
      return RankPlan::Fate::kDies;
    default:
      return RankPlan::Fate::kRaises;
  }
}

RankPlan::Fate draw_life(Random& random) {
  if (random.chance(3)) return RankPlan::Fate::kDeserts;
  return random.chance(3) ? RankPlan::Fate::kNeverEnds : RankPlan::Fate::kSucceeds;
}

RankPlan::OnStop draw_on_stop(Random& random) {
  constexpr RankPlan::OnStop kLess[]{RankPlan::OnStop::kEndsWell, RankPlan::OnStop::kEndsBadly,
                                     RankPlan::OnStop::kIgnores};
  return random.chance(60) ? RankPlan::OnStop::kDies : kLess[random.between(0, 2)];
}

}  // namespace

RankPlan draw_plan(Random& random, int trouble) {
  RankPlan plan;
  plan.fate = random.chance(trouble) ? draw_failure(random) : draw_life(random);
  plan.acts_after = random.up_to(random.chance(50) ? 50ms : 20s);
  plan.cleans_up_for = random.up_to(random.chance(50) ? 100ms : 5s);
  plan.code = plan.fate == RankPlan::Fate::kCannotStart ? (random.chance(50) ? ENOENT : EACCES) : random.between(2, 99);
  plan.signal = random.chance(50) ? SIGSEGV : SIGKILL;
  plan.on_stop = draw_on_stop(random);
  plan.stops_after = random.up_to(random.chance(80) ? 20ms : 40s);
  if (random.chance(5)) plan.survives_kill_for = random.up_to(random.chance(80) ? 10s : 60s);
  if (random.chance(70)) plan.notices_lost_peer_after = random.up_to(300ms);
  if (random.chance(80)) plan.joins_after = random.up_to(random.chance(80) ? 100ms : 30s);
  if (random.chance(10)) plan.leaves_behind = draw_on_stop(random);
  return plan;
}

Evidence words_of_raise(Instant at) {
  Evidence evidence;
  evidence.last_lines = {"Traceback (most recent call last):", "  File \"train.py\", line 3, in load",
                         "    raise ValueError(shape)", "ValueError: bad shape"};
  evidence.first_error_at = at;
  return evidence;
}

Evidence words_of_lost_peer(Instant at) {
  Evidence evidence;
  evidence.last_lines = {
      "[rank0]: Traceback (most recent call last):", "[rank0]:   File \"train.py\", line 9, in <module>",
      "[rank0]: RuntimeError: [gloo/transport/tcp/pair.cc:561] Connection closed by peer [127.0.0.1]:2498"};
  evidence.first_error_at = at;
  return evidence;
}

}  // namespace taas::run
