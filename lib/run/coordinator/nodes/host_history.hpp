#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "run/messages/messages.hpp"

namespace taas::run {

/// Whose fault it is that an agent was lost.
enum class Blame { kHost, kCoordinator };

/// Hosts that something has happened to: which were lost and may come back, after what pause, and which will never take
/// part. A host that was lost has to pause, each time twice as long. A host is known by its place in the list, in whose
/// order it is told of; one without a place by its name. Pure.
class HostHistory {
 public:
  void arrive(const Hello& hello);
  /// Its agent had been there since then, and is lost. A host that is not to blame may come back at once.
  void lose(const Hello& hello, Instant since, Instant at, Blame blame);
  void leave(const Hello& hello) { host_of(hello).lost = true; }
  void refuse(const Hello& hello, std::string why) { host_of(hello).failure = std::move(why); }
  /// Nobody came from there. A host that had been there before may come back another time.
  void fail(int order, std::string why, Instant at);

  [[nodiscard]] bool is_barred(const Hello& hello, Instant now) const;
  [[nodiscard]] bool has_failed(int order) const;
  /// Something has happened to it.
  [[nodiscard]] bool knows(int order) const { return hosts_.contains(key(order, "")); }
  [[nodiscard]] int count_lost() const;
  /// Those that are lost, or will never take part.
  [[nodiscard]] int count_missing() const;
  /// Why hosts will never take part.
  [[nodiscard]] std::vector<std::string> failures() const;

  /// Hosts that were lost and whose pause is over; each is told once a pause.
  std::vector<int> hosts_to_start(Instant now);
  /// The former agent of that host may come back as well.
  [[nodiscard]] bool was_started_again(int order) const { return started_again_.contains(order); }
  [[nodiscard]] std::optional<Instant> next_start() const;

 private:
  struct Host {
    int order = -1;
    int losses = 0;
    bool lost = false;  ///< and not back
    Instant barred_until{};
    std::optional<Instant> start_at;  ///< while lost
    std::string failure;              ///< why it will never take part
  };

  [[nodiscard]] static std::string key(int order, const std::string& hostname);
  [[nodiscard]] Host& host_of(const Hello& hello);

  std::map<std::string, Host> hosts_;
  std::set<int> started_again_;  // by order
};

}  // namespace taas::run
