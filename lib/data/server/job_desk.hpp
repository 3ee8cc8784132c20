#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "data/server/connections.hpp"
#include "data/server/job_queue.hpp"

namespace taas::data {

/// A server's jobs, from the link that brought one to the answer on its way back; and the definitions that they need,
/// which clients are asked for. All calls but end_link() come without the server's mutex, and take it.
class JobDesk {
 public:
  JobDesk(std::mutex& mutex, Connections& connections) : mutex_(mutex), connections_(connections) {}

  // For who makes the batches.
  std::optional<Job> take(Duration patience);
  [[nodiscard]] std::shared_ptr<const ReceivedDefinition> definition(const std::string& digest) const;
  void let_go_of_definition(const std::string& digest);
  void forget_definition(const std::string& digest);
  void answer(const Job& job, OutFrame frame);
  [[nodiscard]] std::uint64_t microseconds_on(const Job& job) const;
  [[nodiscard]] bool is_withdrawn(const Job& job) const;

  // For links.
  bool add(ServerLink& link, Job job, const OpenJob& open);
  void withdraw(ServerLink& link, Attempt attempt);
  void add_definition(const std::string& digest, ReceivedDefinition received);
  std::vector<OutFrame> take_answers(ServerLink& link);
  std::optional<OpenJob> find(ServerLink& link, Attempt attempt);
  void close(ServerLink& link, Attempt attempt);
  void tell_sent(ServerLink& link);
  /// Those of its jobs that were begun some time ago, and that the client has not been told of. When to ask again, too.
  std::pair<std::vector<Attempt>, Duration> long_jobs(ServerLink& link);
  /// With the mutex. Returns what was not sent, to be let go after it.
  std::vector<OutFrame> end_link(std::uint64_t link);

 private:
  [[nodiscard]] OpenJob* find_open(const Job& job) const;
  /// The mutex is let go meanwhile: that the job is begun has left this process, as far as that is possible.
  void tell_begun(std::unique_lock<std::mutex>& lock, const Job& job);
  void ask(std::uint64_t link, const std::string& digest);
  /// For what this link was asked and has no job any more: who withdraws a job may know the definition no more.
  void ask_others(std::uint64_t link);

  std::mutex& mutex_;
  Connections& connections_;
  std::condition_variable jobs_changed_;
  std::condition_variable sent_;  // somebody waits for that: ServerLink::is_awaited
  JobQueue queue_;
  std::map<std::string, std::shared_ptr<const ReceivedDefinition>> definitions_;  // null: the caller has loaded it
  std::map<std::string, std::uint64_t> asked_;  // which link was asked for a definition that is not here
};

}  // namespace taas::data
