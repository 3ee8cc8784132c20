#include "run/agent/restart_pause.hpp"

#include <algorithm>

namespace taas::run {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kAtOnce = 2;
constexpr Duration kWindow = 10s;
constexpr Duration kFirstPause = 1s;
constexpr Duration kLongestPause = 10s;

}  // namespace

Duration RestartPause::next(Instant at) {
  if (!ends_.empty() && at - ends_.back() > kWindow + pause_) {
    ends_.clear();
    pause_ = {};
  }
  ends_.push_back(at);
  if (ends_.size() <= kAtOnce) return {};
  pause_ = pause_ == Duration{} ? kFirstPause : std::min(2 * pause_, kLongestPause);
  return pause_;
}

}  // namespace taas::run
