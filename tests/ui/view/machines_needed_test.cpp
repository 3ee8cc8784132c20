#include "ui/view/machines_needed.hpp"

#include "catch.hpp"

namespace machines_needed_test {

using namespace taas::ui;

TEST_CASE("machines that would have been enough") {
  struct Row {
    DataLoad load;  // machines, busy, worker, training and loop seconds
    std::optional<int> needed;
  };
  const Row rows[] = {
      {{4, 40, 400, 100, 100}, 1},    // a tenth busy, no wait: 0.4 machines
      {{4, 200, 400, 100, 100}, 3},   // half busy: 2 machines, of which none may be busy all the time
      {{4, 180, 400, 100, 100}, 2},   // 1.8 machines at nine tenths
      {{1, 100, 100, 50, 100}, 3},    // always busy, and the GPU waited for half of the time
      {{2, 800, 800, 10, 100}, 23},   // it waited most of the time
      {{0, 0, 0, 100, 100}, {}},      // nobody
      {{2, 0, 200, 100, 100}, {}},    // workers did not tell
      {{2, 100, 200, 0.5, 0.6}, {}},  // too short
      {{2, 200, 200, 1.5, 100}, {}},  // a loop that does nothing with its batches
  };
  for (const auto& row : rows) {
    CAPTURE(row.load.busy_seconds, row.load.training_seconds);
    CHECK(machines_needed(row.load) == row.needed);
  }
}

}  // namespace machines_needed_test
