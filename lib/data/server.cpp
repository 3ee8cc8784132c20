#include "data/server.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>

#include "data/quiet_thread.hpp"
#include "data/server_state.hpp"
#include "data/sockets.hpp"

namespace taas::data {

namespace {

constexpr std::size_t kMostStrangers = 64;
constexpr std::size_t kMostRemarks = 100;

/// Counts as unsent as long as somebody has it.
struct Unsent {
  std::shared_ptr<void> keep;
  std::shared_ptr<std::atomic<std::size_t>> count;
  std::size_t bytes;

  Unsent(std::shared_ptr<void> kept, std::shared_ptr<std::atomic<std::size_t>> counted, std::size_t size)
      : keep(std::move(kept)), count(std::move(counted)), bytes(size) {
    *count += bytes;
  }
  ~Unsent() { *count -= bytes; }
  Unsent(const Unsent&) = delete;
  Unsent& operator=(const Unsent&) = delete;
};

/// Each buffer is made to begin at a multiple of the alignment.
std::vector<std::span<const std::byte>> align(std::vector<std::span<const std::byte>> buffers) {
  static constexpr std::array<std::byte, kBufferAlignment> kZeros{};
  std::vector<std::span<const std::byte>> aligned;
  std::size_t at = 0;
  for (const auto& buffer : buffers) {
    if (const auto past = at % kBufferAlignment; past != 0) {
      aligned.push_back(std::span(kZeros).first(kBufferAlignment - past));
      at += kBufferAlignment - past;
    }
    if (buffer.empty()) continue;
    aligned.push_back(buffer);
    at += buffer.size();
  }
  return aligned;
}

FrameHeader header_for(FrameKind kind, const Job& job) {
  return {.kind = kind, .stream = job.stream, .number = job.number, .attempt = job.attempt};
}

}  // namespace

Server::State::State(ServerOptions chosen) : options(std::move(chosen)), process(::getpid()) {
  auto made = Handshake::make(net::Role::kServer, {.run_id = options.run_id, .key = options.key}, options.encryption);
  if (!made) {
    remark(made.error().message);
    return;
  }
  handshake = std::move(*made);
  accept_thread = quiet_thread([this] { accept_all(); });
}

void Server::State::accept_all() {
  std::array<pollfd, 3> fds{pollfd{.fd = options.tcp_listener.get(), .events = POLLIN, .revents = 0},
                            pollfd{.fd = options.unix_listener.get(), .events = POLLIN, .revents = 0},
                            pollfd{.fd = wakeup.fd().get(), .events = POLLIN, .revents = 0}};
  while (!stopping) {
    ::poll(fds.data(), fds.size(), -1);
    wakeup.clear();
    if (fds[0].revents != 0) accept_one(options.tcp_listener, Family::kTcp);
    if (fds[1].revents != 0) accept_one(options.unix_listener, Family::kUnix);
    join_ended();
  }
}

void Server::State::accept_one(const Fd& listener, Family family) {
  Fd socket = accept_from(listener);
  if (!socket)
    return static_cast<void>(wait_for_wake(wakeup, std::chrono::milliseconds(10)));  // no descriptors, perhaps
  if (family == Family::kTcp) tune_tcp(socket);
  const std::lock_guard lock(mutex);
  if (strangers.size() >= kMostStrangers) return;
  const auto number = next_link++;
  strangers.insert(number);
  auto& link = links[number] = std::make_unique<ServerLink>(*this, number, std::move(socket), family);
  link->start();
}

void Server::State::join_ended() {
  std::vector<std::unique_ptr<ServerLink>> over;  // joined after the mutex
  const std::lock_guard lock(mutex);
  for (const auto number : std::exchange(ended, {})) over.push_back(std::move(links.extract(number).mapped()));
}

void Server::State::stop() {
  stopping = true;
  wakeup.wake();
  if (accept_thread.joinable()) accept_thread.join();
  std::map<std::uint64_t, std::unique_ptr<ServerLink>> all;
  {
    const std::lock_guard lock(mutex);
    all.swap(links);
  }
  all.clear();
}

void Server::State::add_authenticated(std::uint64_t link) {
  const std::lock_guard lock(mutex);
  strangers.erase(link);
}

void Server::State::end_link(std::uint64_t link) {
  std::vector<OutFrame> unsent_answers;  // let go after the mutex
  const std::lock_guard lock(mutex);
  strangers.erase(link);
  queue.remove_all_of(link);
  if (const auto found = links.find(link); found != links.end()) {
    found->second->jobs.clear();
    unsent_answers.swap(found->second->answers);
  }
  for (auto& [digest, from] : asked) {
    const auto other = from == link ? queue.waiting_client(digest) : std::nullopt;
    if (other) ask(*other, digest);
  }
  std::erase_if(asked, [link](const auto& entry) { return entry.second == link; });
  ended.push_back(link);
  wakeup.wake();
}

void Server::State::remark(std::string text) {
  const std::lock_guard lock(mutex);
  if (remarks.size() < kMostRemarks) remarks.push_back(std::move(text));
}

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

void Server::State::add_definition(const std::string& digest, std::string bytes) {
  const std::lock_guard lock(mutex);
  definitions.try_emplace(digest, std::make_shared<const std::string>(std::move(bytes)));
  asked.erase(digest);
  queue.add_definition(digest);
  jobs_changed.notify_all();
}

bool Server::State::add_job(ServerLink& link, Job job, std::uint32_t slot) {
  const std::lock_guard lock(mutex);
  if (!link.jobs.try_emplace(job.attempt, OpenJob{.slot = slot, .withdrawn = false}).second) return false;
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
  link.post(
      {.header = {.kind = FrameKind::kReturned, .attempt = attempt}, .description = {}, .buffers = {}, .keep = {}});
}

void Server::State::answer(const Job& job, OutFrame frame) {
  const std::lock_guard lock(mutex);
  const auto found = links.find(job.client);
  if (found == links.end() || !found->second->jobs.contains(job.attempt)) return;
  found->second->post(std::move(frame));
}

Server::Server(ServerOptions options) : state_(std::make_shared<State>(std::move(options))) {}

Server::~Server() {
  if (::getpid() == state_->process) {
    state_->stop();
  } else {
    static_cast<void>(new std::shared_ptr<State>(state_));  // a forked child: its threads are not here
  }
}

std::optional<Job> Server::take(Duration patience) {
  auto& state = *state_;
  std::unique_lock lock(state.mutex);
  if (!state.jobs_changed.wait_for(lock, patience, [&] { return !state.queue.empty(); })) return {};
  auto job = state.queue.take();
  const auto link = state.links.find(job->client);
  if (link != state.links.end()) {
    link->second->post({.header = header_for(FrameKind::kStarted, *job), .description = {}, .buffers = {}, .keep = {}});
  }
  return job;
}

std::shared_ptr<const std::string> Server::definition(const std::string& digest) const {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->definitions.find(digest);
  return found == state_->definitions.end() ? nullptr : found->second;
}

void Server::put(const Job& job, std::string description, std::vector<std::span<const std::byte>> buffers,
                 std::shared_ptr<void> keep) {
  auto aligned = align(std::move(buffers));
  auto unsent = std::make_shared<Unsent>(std::move(keep), state_->unsent, size_of(aligned));
  state_->answer(job, {.header = header_for(FrameKind::kBatch, job),
                       .description = std::move(description),
                       .buffers = std::move(aligned),
                       .keep = std::move(unsent)});
}

void Server::raise(const Job& job, const Raised& what) {
  auto header = header_for(FrameKind::kRaised, job);
  header.value = what.text.size();
  state_->answer(job, text_frame(header, what.type, what.text + what.pickled));
}

void Server::exhausted(const Job& job) {
  state_->answer(job, {.header = header_for(FrameKind::kExhausted, job), .description = {}, .buffers = {}, .keep = {}});
}

void Server::give_back(const Job& job, std::string why) {
  state_->answer(
      job, {.header = header_for(FrameKind::kReturned, job), .description = std::move(why), .buffers = {}, .keep = {}});
}

bool Server::is_withdrawn(const Job& job) const {
  const std::lock_guard lock(state_->mutex);
  const auto link = state_->links.find(job.client);
  if (link == state_->links.end()) return true;
  const auto found = link->second->jobs.find(job.attempt);
  return found == link->second->jobs.end() || found->second.withdrawn;
}

std::size_t Server::unsent_bytes() const { return *state_->unsent; }

std::vector<std::string> Server::take_remarks() {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->remarks, {});
}

}  // namespace taas::data
