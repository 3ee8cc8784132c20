// A server's jobs: from the link that brought one to the answer on its way back.
#include <algorithm>

#include "data/server/server_state.hpp"

namespace taas::data {

namespace {

constexpr Duration kAnnouncedAfter = std::chrono::milliseconds(2);
constexpr Duration kLookAgain = std::chrono::milliseconds(20);  // whether a job that waits for its turn was begun
constexpr Duration kLongestLook = std::chrono::seconds(2);
constexpr Duration kLongestTelling = std::chrono::seconds(1);  // of a client that does not read

}  // namespace

std::vector<OutFrame> Server::State::take_answers(ServerLink& link) {
  const std::lock_guard lock(mutex);
  return std::exchange(link.answers, {});
}

std::optional<OpenJob> Server::State::find_job(ServerLink& link, Attempt attempt) {
  const std::lock_guard lock(mutex);
  const auto found = link.jobs.find(attempt);
  if (found == link.jobs.end()) return {};
  return found->second;
}

void Server::State::close_job(ServerLink& link, Attempt attempt) {
  const std::lock_guard lock(mutex);
  link.jobs.erase(attempt);
}

void Server::State::ask(std::uint64_t link, const std::string& digest) {
  asked[digest] = link;
  links.at(link)->post(
      {.header = {.kind = FrameKind::kDefinitionWanted}, .description = digest, .buffers = {}, .keep = {}});
}

void Server::State::ask_others(std::uint64_t link) {
  std::erase_if(asked, [&](const auto& entry) {
    const auto& [digest, from] = entry;
    if (from != link || queue.is_waiting(link, digest)) return false;
    const auto other = queue.waiting_client(digest);
    if (other) ask(*other, digest);
    return !other;
  });
}

void Server::State::add_definition(const std::string& digest, ReceivedDefinition received) {
  const std::lock_guard lock(mutex);
  definitions.try_emplace(digest, std::make_shared<const ReceivedDefinition>(std::move(received)));
  asked.erase(digest);
  queue.add_definition(digest);
  jobs_changed.notify_all();
}

void Server::State::forget_definition(const std::string& digest) {
  std::shared_ptr<const ReceivedDefinition> received;  // let go after the mutex
  const std::lock_guard lock(mutex);
  auto found = definitions.extract(digest);
  if (!found) return;
  received.swap(found.mapped());
  queue.remove_definition(digest);
  if (const auto client = queue.waiting_client(digest)) ask(*client, digest);
}

bool Server::State::add_job(ServerLink& link, Job job, const OpenJob& open) {
  const std::lock_guard lock(mutex);
  if (!link.jobs.try_emplace(job.attempt, open).second) return false;
  if (definitions.contains(job.digest)) {
    queue.add(std::move(job));
    jobs_changed.notify_one();
    return true;
  }
  if (!asked.contains(job.digest)) ask(job.client, job.digest);
  queue.add_waiting(std::move(job));
  return true;
}

void Server::State::withdraw(ServerLink& link, Attempt attempt) {
  const std::lock_guard lock(mutex);
  const auto found = link.jobs.find(attempt);
  if (found == link.jobs.end()) return;
  found->second.withdrawn = true;
  if (!queue.remove(link.number(), attempt)) return;
  ask_others(link.number());
  link.post(
      {.header = {.kind = FrameKind::kReturned, .attempt = attempt}, .description = {}, .buffers = {}, .keep = {}});
}

OpenJob* Server::State::find_open(const Job& job) {
  const auto link = links.find(job.client);
  if (link == links.end()) return nullptr;
  const auto found = link->second->jobs.find(job.attempt);
  return found == link->second->jobs.end() ? nullptr : &found->second;
}

std::uint64_t Server::State::microseconds_on(const Job& job) {
  const std::lock_guard lock(mutex);
  const auto* open = find_open(job);
  if (open == nullptr || !open->begun) return 0;
  return static_cast<std::uint64_t>((steady_now() - *open->begun) / std::chrono::microseconds(1));
}

/// What this process dies of must be known to others when it has died.
void Server::State::tell_begun(std::unique_lock<std::mutex>& lock, const Job& job) {
  auto* open = find_open(job);
  if (open == nullptr || !open->told || open->announced) return;
  open->announced = true;
  auto& link = *links.at(job.client);
  link.is_awaited = true;
  link.post(
      {.header = {.kind = FrameKind::kStarted, .attempt = job.attempt}, .description = {}, .buffers = {}, .keep = {}});
  sent.wait_for(lock, kLongestTelling, [&] {
    const auto found = links.find(job.client);
    return found == links.end() || !found->second->is_awaited;
  });
}

void Server::State::tell_sent(ServerLink& link) {
  const std::lock_guard lock(mutex);
  if (!link.answers.empty()) return;
  link.is_awaited = false;
  sent.notify_all();
}

/// Most jobs are done before it is worth a frame that they were begun.
std::pair<std::vector<Attempt>, Duration> Server::State::long_jobs(ServerLink& link) {
  std::pair<std::vector<Attempt>, Duration> result({}, kLongestLook);
  auto& [jobs, again] = result;
  const auto now = steady_now();
  const std::lock_guard lock(mutex);
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

void Server::State::answer(const Job& job, OutFrame frame) {
  const std::lock_guard lock(mutex);
  const auto found = links.find(job.client);
  if (found == links.end() || !found->second->jobs.contains(job.attempt)) return;
  found->second->post(std::move(frame));
}

}  // namespace taas::data
