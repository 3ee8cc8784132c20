#include "run/supervisor/deadlines.hpp"

#include <algorithm>

namespace taas::run {
namespace {

bool is_earlier(const std::pair<const Timer, Instant>& a, const std::pair<const Timer, Instant>& b) {
  return a.second < b.second;
}

}  // namespace

std::optional<Instant> Deadlines::earliest() const {
  auto first = std::min_element(due_.begin(), due_.end(), is_earlier);
  if (first == due_.end()) return std::nullopt;
  return first->second;
}

std::optional<Instant> Deadlines::due(Timer timer) const {
  auto found = due_.find(timer);
  return found == due_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Timer> Deadlines::take_due(Instant now) {
  auto first = std::min_element(due_.begin(), due_.end(), is_earlier);
  if (first == due_.end() || first->second > now) return std::nullopt;
  Timer timer = first->first;
  due_.erase(first);
  return timer;
}

}  // namespace taas::run
