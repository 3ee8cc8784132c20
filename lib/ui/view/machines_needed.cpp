#include "ui/view/machines_needed.hpp"

#include <algorithm>
#include <cmath>

namespace taas::ui {
namespace {

constexpr double kShortest = 1.0;        // seconds of training that say anything
constexpr double kLeastTraining = 0.02;  // of the loop: less is a loop that only takes batches
constexpr double kMostBusy = 0.9;

}  // namespace

std::optional<int> machines_needed(const DataLoad& load) {
  bool known = load.machines > 0 && load.busy_seconds > 0 && load.worker_seconds > 0;
  if (!known || load.training_seconds < std::max(kShortest, kLeastTraining * load.loop_seconds)) return std::nullopt;
  double busy_share = load.busy_seconds / load.worker_seconds;  // of all machines, during the loops
  double busy_machines = load.machines * busy_share * load.loop_seconds / load.training_seconds;
  return std::max(1, static_cast<int>(std::ceil(busy_machines / kMostBusy - 1e-9)));
}

}  // namespace taas::ui
