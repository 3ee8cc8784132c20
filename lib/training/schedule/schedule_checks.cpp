#include "training/schedule/schedule_checks.hpp"

#include <string>

#include "taas/error.hpp"

namespace taas {
namespace {

void require(bool good, const char* schedule, const std::string& what) {
  if (!good) throw InvalidArgument(std::string(schedule) + ": " + what);
}

void require_positive(const char* schedule, const char* option, std::int64_t value) {
  require(value > 0, schedule, std::string(option) + " has to be positive, and is " + std::to_string(value));
}

void require_share(const char* schedule, const char* option, double value) {
  require(value >= 0 && value <= 1, schedule,
          std::string(option) + " has to be between 0 and 1, and is " + std::to_string(value));
}

void require_count(const char* schedule, const char* option, std::size_t count, std::size_t groups) {
  require(count == 1 || count == groups, schedule,
          std::string(option) + " has " + std::to_string(count) + " values, and the optimizer " +
              std::to_string(groups) + " parameter groups: give one for all, or one for each");
}

bool has_members(const LRSchedule& schedule) {
  return std::holds_alternative<SequentialLR>(schedule) || std::holds_alternative<ChainedScheduler>(schedule);
}

/// Checks one schedule of each kind.
struct ScheduleChecks {
  std::size_t groups;

  void operator()(const LambdaLR& of) const { require_count("LambdaLR", "lr_lambda", of.lr_lambda.size(), groups); }
  void operator()(const MultiplicativeLR& of) const {
    require_count("MultiplicativeLR", "lr_lambda", of.lr_lambda.size(), groups);
  }
  void operator()(const StepLR& of) const { require_positive("StepLR", "step_size", of.step_size); }
  void operator()(const MultiStepLR& /*of*/) const {}
  void operator()(const ConstantLR& of) const { require_share("ConstantLR", "factor", of.factor); }
  void operator()(const LinearLR& of) const {
    require_share("LinearLR", "start_factor", of.start_factor);
    require_share("LinearLR", "end_factor", of.end_factor);
    require(of.start_factor > 0, "LinearLR", "start_factor has to be above 0");
    require_positive("LinearLR", "total_iters", of.total_iters);
  }
  void operator()(const ExponentialLR& /*of*/) const {}
  void operator()(const PolynomialLR& of) const { require_positive("PolynomialLR", "total_iters", of.total_iters); }
  void operator()(const CosineAnnealingLR& of) const { require_positive("CosineAnnealingLR", "T_max", of.T_max); }
  void operator()(const CosineAnnealingWarmRestarts& of) const {
    require_positive("CosineAnnealingWarmRestarts", "T_0", of.T_0);
    require_positive("CosineAnnealingWarmRestarts", "T_mult", of.T_mult);
  }
  void operator()(const OneCycleLR& of) const {
    require_count("OneCycleLR", "max_lr", of.max_lr.size(), groups);
    require_positive("OneCycleLR", "total_steps", of.total_steps);
    require_share("OneCycleLR", "pct_start", of.pct_start);
  }
  void operator()(const CyclicLR& of) const {
    require_count("CyclicLR", "base_lr", of.base_lr.size(), groups);
    require_count("CyclicLR", "max_lr", of.max_lr.size(), groups);
    require_count("CyclicLR", "base_momentum", of.base_momentum.size(), groups);
    require_count("CyclicLR", "max_momentum", of.max_momentum.size(), groups);
    require_positive("CyclicLR", "step_size_up", of.step_size_up);
    require(of.step_size_down.value_or(0) >= 0, "CyclicLR",
            "step_size_down has to be 0 or above, and is " + std::to_string(of.step_size_down.value_or(0)));
  }
  void operator()(const SequentialLR& of) const {
    check_members("SequentialLR", of.schedules);
    for (std::size_t i = 1; i < of.schedules.size(); ++i) {
      require(!has_members(of.schedules[i]), "SequentialLR",
              "only its first schedule may have schedules itself, as in Python, and number " + std::to_string(i) +
                  " has: name those in its place");
    }
    require(of.milestones.size() + 1 == of.schedules.size(), "SequentialLR",
            std::to_string(of.schedules.size()) + " schedules need one milestone less, and have " +
                std::to_string(of.milestones.size()));
  }
  void operator()(const ChainedScheduler& of) const { check_members("ChainedScheduler", of.schedules); }

  void check_members(const char* schedule, const std::vector<LRSchedule>& members) const {
    require(!members.empty(), schedule, "it has no schedules");
    for (const auto& member : members) check_schedule(member, groups);
  }
};

}  // namespace

void check_schedule(const LRSchedule& schedule, std::size_t groups) {
  std::visit(ScheduleChecks{groups}, static_cast<const LRScheduleVariant&>(schedule));
}

}  // namespace taas
