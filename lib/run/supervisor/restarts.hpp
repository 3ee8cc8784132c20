#pragma once

#include <string>

#include "run/events/generation.hpp"
#include "run/events/policy.hpp"

namespace taas::run {

/// Whether a generation that failed is followed by another one, and which of the restarts that --max-restarts allows
/// that uses up. Pure.
class Restarts {
 public:
  /// `policy` must outlive this.
  explicit Restarts(const Policy& policy) : policy_(policy) {}

  /// The ranks of a generation are started.
  void begin(Instant now) { started_at_ = now; }
  /// Another generation could end better, and is allowed.
  [[nodiscard]] bool allows(const Verdict& verdict, const GenerationRecord& record) const;
  /// Another generation begins. Returns the number of the restart that is used up; 0: it costs none.
  int use(const Verdict& verdict, const GenerationRecord& record);
  /// The hint of a failure after which no generation follows.
  [[nodiscard]] std::string explain(const Verdict& verdict, const GenerationRecord& record) const;

 private:
  [[nodiscard]] bool failed_at_start(const Verdict& verdict, const GenerationRecord& record) const;

  const Policy& policy_;
  Instant started_at_{};
  int used_ = 0;
};

}  // namespace taas::run
