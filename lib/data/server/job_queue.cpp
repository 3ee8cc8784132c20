#include "data/server/job_queue.hpp"

#include <algorithm>
#include <iterator>

namespace taas::data {

void JobQueue::add(Job job) {
  const Order order{job.number, arrivals_++};
  ready_.emplace(order, std::move(job));
}

void JobQueue::add_waiting(Job job) {
  auto& same = waiting_[job.digest];
  same.push_back(std::move(job));
}

void JobQueue::add_definition(const std::string& digest) {
  auto found = waiting_.extract(digest);
  if (!found) return;
  for (auto& job : found.mapped()) add(std::move(job));
}

void JobQueue::remove_definition(const std::string& digest) {
  for (auto entry = ready_.begin(); entry != ready_.end();) {
    const bool needs_it = entry->second.digest == digest;
    if (needs_it) add_waiting(std::move(entry->second));
    entry = needs_it ? ready_.erase(entry) : std::next(entry);
  }
}

std::optional<Job> JobQueue::take() {
  if (ready_.empty()) return {};
  return std::move(ready_.extract(ready_.begin()).mapped());
}

bool JobQueue::remove(std::uint64_t client, Attempt attempt) {
  const auto is_it = [&](const Job& job) { return job.client == client && job.attempt == attempt; };
  auto removed = std::erase_if(ready_, [&](const auto& entry) { return is_it(entry.second); });
  for (auto& [digest, jobs] : waiting_) removed += std::erase_if(jobs, is_it);
  std::erase_if(waiting_, [](const auto& entry) { return entry.second.empty(); });
  return removed > 0;
}

void JobQueue::remove_all_of(std::uint64_t client) {
  std::erase_if(ready_, [client](const auto& entry) { return entry.second.client == client; });
  for (auto& [digest, jobs] : waiting_) std::erase_if(jobs, [client](const Job& job) { return job.client == client; });
  std::erase_if(waiting_, [](const auto& entry) { return entry.second.empty(); });
}

std::optional<std::uint64_t> JobQueue::waiting_client(const std::string& digest) const {
  const auto found = waiting_.find(digest);
  if (found == waiting_.end()) return {};
  return found->second.front().client;
}

bool JobQueue::is_waiting(std::uint64_t client, const std::string& digest) const {
  const auto found = waiting_.find(digest);
  return found != waiting_.end() && std::any_of(found->second.begin(), found->second.end(),
                                                [client](const Job& job) { return job.client == client; });
}

}  // namespace taas::data
