#pragma once

#include <optional>
#include <string>

#include "run/agent/agent_events.hpp"

namespace taas::run {

/// How an agent looks for its coordinator: when it tries again, what it tells the user meanwhile, and when it gives up.
/// Pure.
class CoordinatorSearch {
 public:
  explicit CoordinatorSearch(const AgentPolicy& policy) : policy_(policy) {}

  /// The link was lost: it is looked for from now on.
  void begin(Instant now);
  void found();
  /// Nobody is looked for any more.
  void stop();
  /// An attempt failed. Returns why there is no point in another one; empty: there is.
  std::string on(const LinkDown& event, Instant now);

  /// The next attempt is due.
  bool take_attempt(Instant now);
  /// One line a reason: who waits sees what the coordinator's machine answers, and can mend it before the time is up.
  /// For a name that nobody knows yet there are more, with the time that it has been waited for.
  std::string take_notice(Instant now, bool searching);
  /// Why the search is given up now; empty: it is not.
  std::string take_failure(Instant now);
  [[nodiscard]] std::optional<Instant> next_deadline() const;

 private:
  [[nodiscard]] Duration patience() const { return ever_found_ ? policy_.rejoin_for : policy_.connect_for; }

  AgentPolicy policy_;
  bool ever_found_ = false;
  int attempts_ = 0;          // since the link was lost
  std::string unreachable_;   // why the last one failed
  std::string unknown_name_;  // because of which it did; empty: for another reason
  std::string told_;          // of these reasons, the last one that the user was told
  Instant began_at_{};        // the search, once give_up_at_ is known
  std::optional<Instant> attempt_at_;
  std::optional<Instant> notice_at_;
  std::optional<Instant> give_up_at_;
};

}  // namespace taas::run
