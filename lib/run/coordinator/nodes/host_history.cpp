#include "run/coordinator/nodes/host_history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace taas::run {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstReplacementPause = 1s;
constexpr Duration kLongestReplacementPause = 60s;
constexpr Duration kProbation = 10s;

Duration pause_after(int losses) {
  return std::min(kFirstReplacementPause * (1 << std::min(losses - 1, 6)), kLongestReplacementPause);
}

}  // namespace

std::string HostHistory::key(int order, const std::string& hostname) {
  return order >= 0 ? fmt::format("#{:06}", order) : hostname;
}

HostHistory::Host& HostHistory::host_of(const Hello& hello) {
  auto& host = hosts_[key(hello.order, hello.hostname)];
  host.order = hello.order;
  return host;
}

void HostHistory::arrive(const Hello& hello) {
  auto host = hosts_.find(key(hello.order, hello.hostname));
  if (host == hosts_.end()) return;
  host->second.lost = false;
  host->second.start_at.reset();
  host->second.failure.clear();
}

/// Whoever has been there for much longer than it had to pause is no bad host.
void HostHistory::lose(const Hello& hello, Instant since, Instant at, Blame blame) {
  Host& host = host_of(hello);
  if (at - since > kProbation + pause_after(std::max(host.losses, 1))) host.losses = 0;
  host.lost = true;
  if (blame == Blame::kHost) host.barred_until = at + pause_after(++host.losses);
  if (host.order >= 0) host.start_at = at + pause_after(std::max(host.losses, 1));
}

void HostHistory::fail(int order, std::string why, Instant at) {
  Host& host = hosts_[key(order, "")];
  host.order = order;
  if (!host.lost) {
    host.failure = std::move(why);
    return;
  }
  host.start_at = at + pause_after(++host.losses);
}

bool HostHistory::is_barred(const Hello& hello, Instant now) const {
  auto host = hosts_.find(key(hello.order, hello.hostname));
  return host != hosts_.end() && host->second.barred_until > now;
}

bool HostHistory::has_failed(int order) const {
  auto host = hosts_.find(key(order, ""));
  return host != hosts_.end() && !host->second.failure.empty();
}

int HostHistory::count_lost() const {
  return static_cast<int>(
      std::count_if(hosts_.begin(), hosts_.end(), [](const auto& entry) { return entry.second.lost; }));
}

int HostHistory::count_missing() const {
  return static_cast<int>(std::count_if(hosts_.begin(), hosts_.end(), [](const auto& entry) {
    return entry.second.lost || !entry.second.failure.empty();
  }));
}

std::vector<std::string> HostHistory::failures() const {
  std::vector<std::string> texts;
  for (const auto& [name, host] : hosts_) {
    if (!host.failure.empty()) texts.push_back(host.failure);
  }
  return texts;
}

std::vector<int> HostHistory::hosts_to_start(Instant now) {
  std::vector<int> orders;
  for (auto& [name, host] : hosts_) {
    if (!host.start_at || *host.start_at > now) continue;
    orders.push_back(host.order);
    started_again_.insert(host.order);
    host.start_at = now + pause_after(std::max(host.losses + 1, 4));
  }
  return orders;
}

std::optional<Instant> HostHistory::next_start() const {
  std::optional<Instant> next;
  for (const auto& [name, host] : hosts_) {
    if (host.start_at && (!next || *host.start_at < *next)) next = host.start_at;
  }
  return next;
}

}  // namespace taas::run
