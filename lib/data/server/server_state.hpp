#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "data/server/job_queue.hpp"
#include "data/server/server.hpp"
#include "data/server/server_link.hpp"

namespace taas::data {

/// All that a server knows, under one mutex.
struct Server::State {
  explicit State(ServerOptions chosen);

  const ServerOptions options;
  const pid_t process;
  std::optional<Handshake> handshake;
  std::shared_ptr<std::atomic<std::size_t>> unsent = std::make_shared<std::atomic<std::size_t>>(0);

  mutable std::mutex mutex;
  std::condition_variable jobs_changed;
  std::condition_variable sent;  ///< somebody waits for that: ServerLink::is_awaited
  JobQueue queue;
  std::map<std::string, std::shared_ptr<const ReceivedDefinition>> definitions;  ///< null: the caller has loaded it
  std::map<std::string, std::uint64_t> asked;  ///< which link was asked for a definition that is not here
  std::map<std::uint64_t, std::unique_ptr<ServerLink>> links;
  std::map<std::uint64_t, Instant> strangers;  ///< links whose secret is not proved, the oldest first, and their begin
  std::vector<std::uint64_t> ended;            ///< links whose thread is at its end
  std::uint64_t next_link = 1;
  std::vector<std::string> remarks;

  Wakeup wakeup;
  std::atomic<bool> stopping = false;
  std::thread accept_thread;

  // For links, without the mutex.
  void add_authenticated(std::uint64_t link);
  void end_link(std::uint64_t link);
  void remark(std::string text);
  std::vector<OutFrame> take_answers(ServerLink& link);
  std::optional<OpenJob> find_job(ServerLink& link, Attempt attempt);
  void close_job(ServerLink& link, Attempt attempt);
  void add_definition(const std::string& digest, ReceivedDefinition received);
  void forget_definition(const std::string& digest);
  bool add_job(ServerLink& link, Job job, const OpenJob& open);
  void tell_sent(ServerLink& link);
  void withdraw(ServerLink& link, Attempt attempt);
  /// Those of its jobs that were begun some time ago, and that the client has not been told of. When to ask again, too.
  std::pair<std::vector<Attempt>, Duration> long_jobs(ServerLink& link);

  void answer(const Job& job, OutFrame frame);
  std::uint64_t microseconds_on(const Job& job);
  OpenJob* find_open(const Job& job);  ///< with the mutex
  /// With the mutex, which is let go meanwhile: that the job is begun has left this process, as far as that is
  /// possible.
  void tell_begun(std::unique_lock<std::mutex>& lock, const Job& job);
  void accept_all();
  void stop();

 private:
  void accept_one(const Fd& listener, AddressFamily family);
  /// For one more stranger; otherwise how long the oldest one may stay.
  std::optional<Duration> make_room();
  void join_ended();
  // With the mutex.
  void ask(std::uint64_t link, const std::string& digest);
  /// For what this link was asked and has no job any more: who withdraws a job may know the definition no more.
  void ask_others(std::uint64_t link);
};

}  // namespace taas::data
