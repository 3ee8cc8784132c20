#pragma once

#include <string>

#include "run/events/generation.hpp"
#include "run/events/policy.hpp"

namespace taas::run {

/// What follows a generation that failed.
struct AfterFailure {
  bool restarting = false;
  int restart = 0;   ///< the number of the restart that is used up; 0: none is
  Duration pause{};  ///< before the next generation begins
  int alike = 0;     ///< how many generations in a row had failed in the same way before, each soon after its start
  std::string hint;  ///< of the failure, and why no generation follows where one would have been allowed
};

/// Whether a generation that failed is followed by another one, when, and which of the restarts that --max-restarts
/// allows that uses up.
/// - Restarts are made as they were asked for, but for a program that cannot be executed, and one that raises the same
///   exception at the same line twice in a row before any rank has reached the store. An exception that a machine, a
///   network or a device may have caused never counts.
/// - A generation that failed within ten seconds of its start is followed by the next after a pause that doubles from
///   one second to thirty, so that the restarts outlast a disturbance. With --monitor-interval, generations begin that
///   far apart instead.
/// Pure.
class Restarts {
 public:
  /// `policy` must outlive this.
  explicit Restarts(const Policy& policy) : policy_(policy) {}

  /// The ranks of a generation are started.
  void begin(Instant now) { started_at_ = now; }
  /// It has failed. `allowed`: nothing else forbids another one.
  AfterFailure decide(const Verdict& verdict, const GenerationRecord& record, Instant now, bool allowed);

 private:
  bool raises_again(const Verdict& verdict, const GenerationRecord& record);
  int count_alike(const Verdict& verdict, Instant now);
  Duration next_pause(Instant now);

  const Policy& policy_;
  Instant started_at_{};
  int used_ = 0;
  std::string raised_;   // by the last generation, at its start; empty: nothing that has to come again
  std::string failure_;  // of the last generation, in words that an equal one has too; empty: none equals it
  int alike_ = 0;        // as AfterFailure
  Duration pause_{};     // the last one
};

}  // namespace taas::run
