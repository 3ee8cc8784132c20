#include "data/server/job_desk.hpp"

#include <algorithm>

namespace taas::data {

namespace {

constexpr Duration kAnnouncedAfter = std::chrono::milliseconds(2);
constexpr Duration kLookAgain = std::chrono::milliseconds(20);  // whether a job that waits for its turn was begun
constexpr Duration kLongestLook = std::chrono::seconds(2);
constexpr Duration kLongestTelling = std::chrono::seconds(1);  // of a client that does not read

}  // namespace

std::optional<Job> JobDesk::take(Duration patience) {
  std::unique_lock lock(mutex_);
  if (!jobs_changed_.wait_for(lock, patience, [this] { return !queue_.empty(); })) return {};
  auto job = queue_.take();
  if (auto* open = find_open(*job)) open->begun = steady_now();
  tell_begun(lock, *job);
  return job;
}

std::shared_ptr<const ReceivedDefinition> JobDesk::definition(const std::string& digest) const {
  const std::lock_guard lock(mutex_);
  const auto found = definitions_.find(digest);
  return found == definitions_.end() ? nullptr : found->second;
}

void JobDesk::let_go_of_definition(const std::string& digest) {
  std::shared_ptr<const ReceivedDefinition> received;  // let go after the mutex
  const std::lock_guard lock(mutex_);
  if (const auto found = definitions_.find(digest); found != definitions_.end()) received.swap(found->second);
}

bool JobDesk::is_withdrawn(const Job& job) const {
  const std::lock_guard lock(mutex_);
  const auto* open = find_open(job);
  return open == nullptr || open->withdrawn;
}

std::vector<OutFrame> JobDesk::take_answers(ServerLink& link) {
  const std::lock_guard lock(mutex_);
  return std::exchange(link.answers, {});
}

std::optional<OpenJob> JobDesk::find(ServerLink& link, Attempt attempt) {
  const std::lock_guard lock(mutex_);
  const auto found = link.jobs.find(attempt);
  if (found == link.jobs.end()) return {};
  return found->second;
}

void JobDesk::close(ServerLink& link, Attempt attempt) {
  const std::lock_guard lock(mutex_);
  link.jobs.erase(attempt);
}

void JobDesk::ask(std::uint64_t link, const std::string& digest) {
  asked_[digest] = link;
  connections_.at(link).post(frame_of({.kind = FrameKind::kDefinitionWanted}, digest));
}

void JobDesk::ask_others(std::uint64_t link) {
  std::erase_if(asked_, [&](const auto& entry) {
    const auto& [digest, from] = entry;
    if (from != link || queue_.is_waiting(link, digest)) return false;
    const auto other = queue_.waiting_client(digest);
    if (other) ask(*other, digest);
    return !other;
  });
}

void JobDesk::add_definition(const std::string& digest, ReceivedDefinition received) {
  const std::lock_guard lock(mutex_);
  definitions_.try_emplace(digest, std::make_shared<const ReceivedDefinition>(std::move(received)));
  asked_.erase(digest);
  queue_.add_definition(digest);
  jobs_changed_.notify_all();
}

void JobDesk::forget_definition(const std::string& digest) {
  std::shared_ptr<const ReceivedDefinition> received;  // let go after the mutex
  const std::lock_guard lock(mutex_);
  auto found = definitions_.extract(digest);
  if (!found) return;
  received.swap(found.mapped());
  queue_.remove_definition(digest);
  if (const auto client = queue_.waiting_client(digest)) ask(*client, digest);
}

bool JobDesk::add(ServerLink& link, Job job, const OpenJob& open) {
  const std::lock_guard lock(mutex_);
  if (!link.jobs.try_emplace(job.attempt, open).second) return false;
  if (definitions_.contains(job.digest)) {
    queue_.add(std::move(job));
    jobs_changed_.notify_one();
    return true;
  }
  if (!asked_.contains(job.digest)) ask(job.client, job.digest);
  queue_.add_waiting(std::move(job));
  return true;
}

void JobDesk::withdraw(ServerLink& link, Attempt attempt) {
  const std::lock_guard lock(mutex_);
  const auto found = link.jobs.find(attempt);
  if (found == link.jobs.end()) return;
  found->second.withdrawn = true;
  if (!queue_.remove(link.number(), attempt)) return;
  ask_others(link.number());
  link.post(frame_of({.kind = FrameKind::kReturned, .attempt = attempt}));
}

OpenJob* JobDesk::find_open(const Job& job) const {
  auto* link = connections_.find(job.client);
  if (link == nullptr) return nullptr;
  const auto found = link->jobs.find(job.attempt);
  return found == link->jobs.end() ? nullptr : &found->second;
}

std::uint64_t JobDesk::microseconds_on(const Job& job) const {
  const std::lock_guard lock(mutex_);
  const auto* open = find_open(job);
  if (open == nullptr || !open->begun) return 0;
  return static_cast<std::uint64_t>((steady_now() - *open->begun) / std::chrono::microseconds(1));
}

/// What this process dies of must be known to others when it has died.
void JobDesk::tell_begun(std::unique_lock<std::mutex>& lock, const Job& job) {
  auto* open = find_open(job);
  if (open == nullptr || !open->told || open->announced) return;
  open->announced = true;
  auto& link = connections_.at(job.client);
  link.is_awaited = true;
  link.post(frame_of({.kind = FrameKind::kStarted, .attempt = job.attempt}));
  sent_.wait_for(lock, kLongestTelling, [&] {
    const auto* there = connections_.find(job.client);
    return there == nullptr || !there->is_awaited;
  });
}

void JobDesk::tell_sent(ServerLink& link) {
  const std::lock_guard lock(mutex_);
  if (!link.answers.empty()) return;
  link.is_awaited = false;
  sent_.notify_all();
}

/// Most jobs are done before it is worth a frame that they were begun.
std::pair<std::vector<Attempt>, Duration> JobDesk::long_jobs(ServerLink& link) {
  std::pair<std::vector<Attempt>, Duration> result({}, kLongestLook);
  auto& [jobs, again] = result;
  const auto now = steady_now();
  const std::lock_guard lock(mutex_);
  for (auto& [attempt, job] : link.jobs) {
    if (job.announced) continue;
    const auto left = job.begun ? *job.begun + kAnnouncedAfter - now : kLookAgain;
    if (left > Duration(0)) {
      again = std::min(again, left);
    } else {
      job.announced = true;
      jobs.push_back(attempt);
    }
  }
  return result;
}

void JobDesk::answer(const Job& job, OutFrame frame) {
  const std::lock_guard lock(mutex_);
  if (find_open(job) != nullptr) connections_.at(job.client).post(std::move(frame));
}

std::vector<OutFrame> JobDesk::end_link(std::uint64_t link) {
  std::vector<OutFrame> unsent;
  queue_.remove_all_of(link);
  if (auto* ended = connections_.find(link)) {
    ended->jobs.clear();
    ended->is_awaited = false;
    sent_.notify_all();
    unsent.swap(ended->answers);
  }
  ask_others(link);
  return unsent;
}

}  // namespace taas::data
