#include "run/agent/coordinator_search.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace taas::run {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstConnectPause = 100ms;
constexpr Duration kLongestConnectPause = 2s;
/// Nodes are started one after the other: the first seconds without an answer mean nothing.
constexpr Duration kFirstNotice = 3s;
constexpr Duration kNextNotice = 30s;

std::string with_way_out(std::string reason) {
  if (reason.ends_with("wrong secret")) return reason + " (TAAS_TOKEN or --token-file is not the same)";
  if (reason.ends_with("another run listens there")) return reason + " (--rdzv-id is not the same)";
  return reason;
}

}  // namespace

void CoordinatorSearch::begin(Instant now) {
  attempts_ = 0;
  began_at_ = now;
  give_up_at_ = now + policy_.rejoin_for;
}

void CoordinatorSearch::found() {
  ever_found_ = true;
  attempts_ = 0;
  stop();
}

void CoordinatorSearch::stop() { attempt_at_ = notice_at_ = give_up_at_ = std::nullopt; }

std::string CoordinatorSearch::on(const LinkDown& event, Instant now) {
  if (event.refused && (ever_found_ || policy_.coordinator_first)) {
    return fmt::format("the coordinator is gone: {}", event.reason);
  }
  unreachable_ = with_way_out(event.reason);
  unknown_name_ = event.unknown_name;
  if (!policy_.coordinator_first && !notice_at_) notice_at_ = now + kFirstNotice;
  if (!give_up_at_) {
    began_at_ = now;
    give_up_at_ = now + patience();
  }
  attempt_at_ = now + std::min(kFirstConnectPause * (1 << std::min(attempts_++, 8)), kLongestConnectPause);
  return "";
}

bool CoordinatorSearch::take_attempt(Instant now) { return take_due(attempt_at_, now); }

std::string CoordinatorSearch::take_notice(Instant now, bool searching) {
  if (!take_due(notice_at_, now)) return "";
  notice_at_ = now + kNextNotice;
  auto left = give_up_at_ ? seconds(*give_up_at_ - now) : 0;
  if (!searching || left <= 0) return "";
  if (!unknown_name_.empty()) {
    told_.clear();
    return fmt::format("waiting for the name {}, {:.0f} s: no address is known for it yet; for {:.0f} s more",
                       unknown_name_, seconds(now - began_at_), left);
  }
  if (unreachable_ == told_) return "";
  told_ = unreachable_;
  return fmt::format("still looking for the coordinator, for {:.0f} s more: {}", left, told_);
}

std::string CoordinatorSearch::take_failure(Instant now) {
  if (!take_due(give_up_at_, now)) return "";
  return fmt::format("the coordinator could not be reached for {:g} s{}{}", seconds(patience()),
                     unreachable_.empty() ? "" : ": ", unreachable_);
}

std::optional<Instant> CoordinatorSearch::next_deadline() const {
  return earliest({attempt_at_, notice_at_, give_up_at_});
}

}  // namespace taas::run
