#include "training/schedule/schedule_run.hpp"

#include <algorithm>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "training/schedule/cyclic.hpp"
#include "training/schedule/momenta.hpp"
#include "training/schedule/one_cycle.hpp"
#include "training/schedule/rates.hpp"

namespace taas {
namespace {

using Dict = c10::impl::GenericDict;
using Shared = std::shared_ptr<ScheduledOptimizer>;

Dict empty_state() { return Dict(c10::StringType::get(), c10::AnyType::get()); }

void require_length(const std::vector<double>& numbers, std::size_t groups) {
  if (numbers.size() != groups) throw std::invalid_argument("of another optimizer");
}

/// A schedule of one kind, which has no schedules itself.
template <class Schedule>
class SingleRun : public LRScheduler::Run {
  static constexpr bool kRestarts = std::is_same_v<Schedule, CosineAnnealingWarmRestarts>;
  static constexpr bool kIsCyclic = std::is_same_v<Schedule, CyclicLR>;
  static constexpr const char* kName = kIsCyclic ? "CyclicLR" : "OneCycleLR";  // of those with momentum

 public:
  SingleRun(Shared shared, Schedule schedule) : shared_(std::move(shared)), schedule_(std::move(schedule)) {
    if constexpr (kIsCyclic) start_cycles();
    if (shared_->initial_rates.empty()) shared_->initial_rates = shared_->rates();
    if constexpr (std::is_same_v<Schedule, OneCycleLR>)
      shared_->initial_rates = initial_rates(schedule_, shared_->initial_rates.size());
    if constexpr (kRestarts) now_.cycle_length = schedule_.T_0;
    now_.base = shared_->initial_rates;
    start();
    if constexpr (kIsCyclic) now_.base = cycle_start(schedule_, now_.base.size()).rates;  // not before, as in Python
  }

  void start() override {
    steps_ = 0;
    now_.is_first = true;
    step();
    now_.is_first = false;
  }
  void step() override {
    ++steps_;
    if constexpr (kRestarts) count_cycle(schedule_, now_);
    ++now_.step;
    apply();
  }
  void undo() override { --now_.step; }
  void begin_turn() override {
    now_.step = 0;
    now_.is_turn = true;
    apply();
    now_.is_turn = false;
  }

  [[nodiscard]] Dict state() const override {
    auto state = empty_state();
    state.insert("base_lrs", list_of(now_.base));
    state.insert("last_epoch", now_.step);
    state.insert("_step_count", steps_);
    state.insert("_last_lr", list_of(last_rates));
    if constexpr (kRestarts) {
      state.insert("T_cur", now_.cycle_step);
      state.insert("T_i", now_.cycle_length);
    }
    return state;
  }
  void load(const Dict& state) override {
    auto base = numbers_in(state.at("base_lrs")), last = numbers_in(state.at("_last_lr"));
    require_length(base, now_.base.size());
    require_length(last, now_.base.size());
    if constexpr (kRestarts) {
      now_.cycle_step = state.at("T_cur").toInt();
      now_.cycle_length = state.at("T_i").toInt();
    }
    now_.step = state.at("last_epoch").toInt();
    steps_ = state.at("_step_count").toInt();
    now_.base = std::move(base);
    last_rates = std::move(last);
    shared_->set_rates(last_rates);
  }

 private:
  void start_cycles() requires kIsCyclic {
    const auto [rates, momenta] = cycle_start(schedule_, shared_->rates().size());
    if (schedule_.cycle_momentum) set_momenta(shared_->optimizer, momenta, kName);
    shared_->set_rates(rates);
  }
  void apply() {
    now_.current = shared_->rates();
    if constexpr (CyclesMomentum<Schedule>) {
      auto [rates, momenta] = rates_and_momenta(schedule_, now_);
      last_rates = std::move(rates);
      if (schedule_.cycle_momentum) set_momenta(shared_->optimizer, momenta, kName);
    } else {
      last_rates = rates_of(schedule_, now_);
    }
    shared_->set_rates(last_rates);
  }

  Shared shared_;
  Schedule schedule_;
  Moment now_;
  std::int64_t steps_ = 0;
};

/// The schedules of a schedule.
class MemberRuns {
 public:
  MemberRuns(const Shared& shared, const std::vector<LRSchedule>& schedules) {
    for (const auto& schedule : schedules) runs_.push_back(make_run(shared, schedule));
  }

  void undo() const {
    for (const auto& run : runs_) run->undo();
  }
  [[nodiscard]] c10::IValue states() const {
    c10::impl::GenericList states(c10::AnyType::get());
    for (const auto& run : runs_) states.push_back(run->state());
    return states;
  }
  void load(const c10::IValue& states) {
    const auto list = states.toListRef();
    if (list.size() != runs_.size()) throw std::invalid_argument("of another number of schedules");
    for (std::size_t i = 0; i < runs_.size(); ++i) runs_[i]->load(list[i].toGenericDict());
  }
  [[nodiscard]] auto begin() const { return runs_.begin(); }
  [[nodiscard]] auto end() const { return runs_.end(); }
  [[nodiscard]] LRScheduler::Run& at(std::size_t index) const { return *runs_.at(index); }

 private:
  std::vector<std::unique_ptr<LRScheduler::Run>> runs_;
};

class SequentialRun : public LRScheduler::Run {
 public:
  SequentialRun(Shared shared, const SequentialLR& schedule)
      : shared_(std::move(shared)), members_(shared_, schedule.schedules), milestones_(schedule.milestones) {
    shared_->set_rates(shared_->initial_rates);
    members_.undo();
    follow(index(), &LRScheduler::Run::start);
  }

  /// Within another SequentialLR: for Python that is a step like others.
  void start() override { step(); }
  void undo() override { members_.undo(); }
  void step() override {
    ++step_;
    const auto now = index();
    const bool begins = now > 0 && milestones_[now - 1] == step_;
    follow(now, begins ? &LRScheduler::Run::begin_turn : &LRScheduler::Run::step);
  }

  [[nodiscard]] Dict state() const override {
    auto state = empty_state();
    state.insert("last_epoch", step_);
    state.insert("_last_lr", list_of(last_rates));
    state.insert("_schedulers", members_.states());
    return state;
  }
  void load(const Dict& state) override {
    members_.load(state.at("_schedulers"));
    step_ = state.at("last_epoch").toInt();
    last_rates = numbers_in(state.at("_last_lr"));
    shared_->set_rates(last_rates);
  }

 private:
  /// Whose turn it is.
  [[nodiscard]] std::size_t index() const {
    return static_cast<std::size_t>(std::upper_bound(milestones_.begin(), milestones_.end(), step_) -
                                    milestones_.begin());
  }
  void follow(std::size_t member, void (LRScheduler::Run::*call)()) {
    auto& run = members_.at(member);
    (run.*call)();
    last_rates = run.last_rates;
  }

  Shared shared_;
  MemberRuns members_;
  std::vector<std::int64_t> milestones_;
  std::int64_t step_ = 0;
};

class ChainedRun : public LRScheduler::Run {
 public:
  ChainedRun(Shared shared, const ChainedScheduler& schedule)
      : shared_(std::move(shared)), members_(shared_, schedule.schedules) {
    last_rates = shared_->rates();
  }

  void start() override { step(); }
  void undo() override { members_.undo(); }
  void step() override {
    for (const auto& member : members_) member->step();
    last_rates = shared_->rates();
  }

  [[nodiscard]] Dict state() const override {
    auto state = empty_state();
    state.insert("_last_lr", list_of(last_rates));
    state.insert("_schedulers", members_.states());
    return state;
  }
  void load(const Dict& state) override {
    members_.load(state.at("_schedulers"));
    last_rates = numbers_in(state.at("_last_lr"));
    shared_->set_rates(last_rates);
  }

 private:
  Shared shared_;
  MemberRuns members_;
};

}  // namespace

std::vector<double> ScheduledOptimizer::rates() const {
  std::vector<double> rates;
  for (const auto& group : optimizer.param_groups()) rates.push_back(group.options().get_lr());
  return rates;
}

void ScheduledOptimizer::set_rates(const std::vector<double>& rates) const {
  auto& groups = optimizer.param_groups();
  if (rates.size() != groups.size()) throw std::invalid_argument("another number of parameter groups");
  for (std::size_t group = 0; group < rates.size(); ++group) groups[group].options().set_lr(rates[group]);
}

std::unique_ptr<LRScheduler::Run> make_run(const std::shared_ptr<ScheduledOptimizer>& optimizer,
                                           const LRSchedule& schedule) {
  const auto make = [&](const auto& of) -> std::unique_ptr<LRScheduler::Run> {
    using Schedule = std::decay_t<decltype(of)>;
    if constexpr (std::is_same_v<Schedule, SequentialLR>) {
      return std::make_unique<SequentialRun>(optimizer, of);
    } else if constexpr (std::is_same_v<Schedule, ChainedScheduler>) {
      return std::make_unique<ChainedRun>(optimizer, of);
    } else {
      return std::make_unique<SingleRun<Schedule>>(optimizer, of);
    }
  };
  return std::visit(make, static_cast<const LRScheduleVariant&>(schedule));
}

c10::IValue list_of(const std::vector<double>& numbers) {
  c10::impl::GenericList list(c10::AnyType::get());
  for (double number : numbers) list.push_back(number);
  return list;
}

std::vector<double> numbers_in(const c10::IValue& list) {
  std::vector<double> numbers;
  for (const auto& value : list.toListRef()) numbers.push_back(value.toScalar().toDouble());
  return numbers;
}

}  // namespace taas
