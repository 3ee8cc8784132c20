#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/server/server.hpp"

namespace taas::data {

/// Jobs that nobody has begun: the lowest number first, whoever wants it. Those whose definition is not here wait for
/// it.
class JobQueue {
 public:
  void add(Job job);
  void add_waiting(Job job);
  /// Jobs that waited for it can be begun now.
  void add_definition(const std::string& digest);

  /// Jobs wait for it again.
  void remove_definition(const std::string& digest);

  std::optional<Job> take();
  [[nodiscard]] bool empty() const { return ready_.empty(); }
  /// Whether it was still here.
  bool remove(std::uint64_t client, Attempt attempt);
  void remove_all_of(std::uint64_t client);
  /// A client that has a job waiting for the definition, or none.
  [[nodiscard]] std::optional<std::uint64_t> waiting_client(const std::string& digest) const;
  /// Whether this client has one.
  [[nodiscard]] bool is_waiting(std::uint64_t client, const std::string& digest) const;

 private:
  using Order = std::pair<std::uint64_t, std::uint64_t>;  ///< number, arrival
  std::map<Order, Job> ready_;
  std::map<std::string, std::vector<Job>> waiting_;  ///< by digest; no empty ones
  std::uint64_t arrivals_ = 0;
};

}  // namespace taas::data
