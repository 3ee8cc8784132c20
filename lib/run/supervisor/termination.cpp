#include "run/supervisor/termination.hpp"

#include <fmt/format.h>

#include <csignal>

#include "run/events/words.hpp"

namespace taas::run {
namespace {

using namespace std::chrono_literals;

constexpr auto kLeftoverGrace = 2s;  // once it was waited for long enough, and has been told
constexpr auto kKillInterval = 1s;
constexpr auto kKillNoticeAfter = 5s;
constexpr auto kGiveUpAfter = 30s;

}  // namespace

void Termination::stop(int signal, bool sent) {
  record_.stop(signal, actions_.now());
  deadlines_.cancel(Timer::kJoinNotice);
  deadlines_.set(Timer::kShutdown, actions_.now() + policy_.shutdown_timeout);
  if (auto living = record_.living(); !living.empty()) {
    actions_.emit(SignalRanks{record_.generation(), living, signal, true, sent});
  }
}

void Termination::sweep() {
  deadlines_.cancel(Timer::kJoinNotice);
  if (record_.killed()) return;  // GenerationGone is under way
  actions_.emit(SweepGeneration{record_.generation(), SIGTERM});
}

void Termination::await_leftovers() {
  deadlines_.cancel(Timer::kJoinNotice);
  if (policy_.leftover_timeout == Duration{}) return end_leftovers(kLeftoverGrace);
  actions_.emit(SweepGeneration{record_.generation(), 0});
  deadlines_.set(Timer::kLeftover, actions_.now() + policy_.leftover_timeout);
}

void Termination::stop_leftovers() {
  deadlines_.cancel(Timer::kLeftover);
  end_leftovers(policy_.shutdown_timeout);
}

void Termination::end_leftovers(Duration grace) {
  actions_.emit(SweepGeneration{record_.generation(), SIGTERM});
  deadlines_.set(Timer::kShutdown, actions_.now() + grace);
}

void Termination::kill() {
  if (record_.killed()) return;
  record_.kill(actions_.now());
  deadlines_.cancel(Timer::kShutdown);
  deadlines_.cancel(Timer::kLeftover);
  actions_.emit(KillGeneration{record_.generation()});
  await_death();
}

void Termination::await_death() {
  deadlines_.set(Timer::kKillAgain, actions_.now() + kKillInterval);
  deadlines_.set(Timer::kKillNotice, actions_.now() + kKillNoticeAfter);
  deadlines_.set(Timer::kGiveUp, actions_.now() + kGiveUpAfter);
}

void Termination::on_shutdown_timeout() {
  if (record_.over()) actions_.notify("processes that ranks left behind did not end: killing them");
  kill();
}

void Termination::on_leftover_timeout() {
  actions_.notify(fmt::format("what ranks left behind did not end within {} s (--leftover-timeout): it is ended",
                              std::chrono::duration<double>(policy_.leftover_timeout).count()));
  end_leftovers(kLeftoverGrace);
}

void Termination::on_kill_again() {
  deadlines_.set(Timer::kKillAgain, actions_.now() + kKillInterval);
  actions_.emit(KillGeneration{record_.generation()});
}

void Termination::on_give_up() {
  gave_up_ = true;
  tell_what_does_not_die("giving up on them");
}

void Termination::tell_what_does_not_die(std::string_view then) {
  auto living = record_.living();
  auto who = living.empty() ? "processes that ranks left behind"
                            : name_ranks(living, policy_.node_of_rank, policy_.node_names);
  actions_.notify(
      fmt::format("{} cannot be killed, which is so for a process that waits for a device or a network disk{}: {}", who,
                  one_node(policy_.node_of_rank) ? "" : ", or whose node does not answer", then));
}

}  // namespace taas::run
