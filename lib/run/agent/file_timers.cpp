#include "run/agent/file_timers.hpp"

#include <algorithm>
#include <boost/json/object.hpp>
#include <cmath>
#include <csignal>
#include <limits>

#include "base/json/json.hpp"

namespace taas::run {
namespace {

namespace json = boost::json;

std::optional<double> number(const json::object& request, const char* name) {
  const auto* value = request.if_contains(name);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  auto read = value->to_number<double>();
  return std::isfinite(read) ? std::optional(read) : std::nullopt;
}

std::optional<int> whole_number(const json::object& request, const char* name) {
  auto read = number(request, name);
  const bool fits = read && std::abs(*read) <= std::numeric_limits<int>::max() && std::trunc(*read) == *read;
  return fits ? std::optional(static_cast<int>(*read)) : std::nullopt;
}

/// Whether `one` counts before `other` of the same process.
bool is_stronger(const FileTimer& one, const FileTimer& other) {
  if ((one.signal > 0) != (other.signal > 0)) return one.signal > 0;
  return one.expires_at < other.expires_at;
}

}  // namespace

std::optional<FileTimer> parse_file_timer(std::string_view line) {
  auto parsed = parse_json(line);
  if (!parsed || !parsed->is_object()) return std::nullopt;
  const auto& request = parsed->get_object();
  auto pid = whole_number(request, "pid");
  auto signal = whole_number(request, "signal");
  auto expires_at = number(request, "expiration_time");
  const auto* scope = request.if_contains("scope_id");
  if (!pid || *pid <= 0 || !signal || *signal > SIGRTMAX || !expires_at) return std::nullopt;
  if (scope == nullptr || !scope->is_string()) return std::nullopt;
  return FileTimer{*pid, std::string(scope->get_string()), *expires_at, *signal};
}

bool FileTimers::take(FileTimer timer) {
  std::pair key(timer.pid, timer.scope);
  if (timer.expires_at < 0) {
    timers_.erase(key);
    return true;
  }
  if (timers_.size() >= kMost && !timers_.contains(key)) return false;
  timers_.insert_or_assign(std::move(key), std::move(timer));
  return true;
}

std::optional<double> FileTimers::next() const {
  std::optional<double> first;
  for (const auto& [key, timer] : timers_) first = std::min(first.value_or(timer.expires_at), timer.expires_at);
  return first;
}

std::vector<FileTimer> FileTimers::expire(double now) {
  std::map<int, FileTimer> expired;
  for (const auto& [key, timer] : timers_) {
    if (timer.expires_at > now) continue;
    auto [found, is_new] = expired.try_emplace(timer.pid, timer);
    if (!is_new && is_stronger(timer, found->second)) found->second = timer;
  }
  forget_if([&](int pid) { return expired.contains(pid); });
  std::vector<FileTimer> all;
  for (auto& entry : expired) all.push_back(std::move(entry.second));
  return all;
}

}  // namespace taas::run
