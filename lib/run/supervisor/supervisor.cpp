#include "run/supervisor/supervisor.hpp"

#include <algorithm>
#include <utility>

#include "run/supervisor/supervisor_state.hpp"

namespace taas::run {
namespace {}  // namespace

Supervisor::Supervisor(Policy policy) : state_(std::make_unique<State>(std::move(policy))) {}
Supervisor::~Supervisor() = default;

std::vector<Action> Supervisor::handle(const Event& event) {
  State& state = *state_;
  state.actions.clear();
  if (state.phase == State::Phase::kFinished) return {};
  state.now = std::max(state.now, instant_of(event));
  std::visit([&state](const auto& happened) { state.on(happened); }, event);
  if (state.phase != State::Phase::kFinished) state.announce_deadline();
  return std::exchange(state.actions, {});
}

void Supervisor::State::announce_deadline() {
  auto next = deadlines.earliest();
  if (next == announced) return;
  announced = next;
  next ? emit(SetDeadline{*next}) : emit(ClearDeadline{});
}

void Supervisor::State::on(const DeadlineReached& event) {
  announced.reset();  // the agent's timer has run out
  while (auto timer = deadlines.take_due(event.at)) on_timer(*timer);
}

}  // namespace taas::run
