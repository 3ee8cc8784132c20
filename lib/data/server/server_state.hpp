#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "data/server/connections.hpp"
#include "data/server/job_desk.hpp"

namespace taas::data {

/// What links and the caller of a Server share: its parts, and the one mutex over them.
struct Server::State {
  explicit State(ServerOptions chosen);

  // Without the mutex.
  void end_link(std::uint64_t link);
  void remark(std::string text);
  void stop() { connections.stop(); }
  /// Of the caller's thread: begins to accept clients, unless that has begun. Tried again where there was no thread.
  void accept();

  const ServerOptions options;
  const pid_t process;
  std::optional<Handshake> handshake;

  bool accepts = false;

  mutable std::mutex mutex;
  std::vector<std::string> remarks;
  Connections connections{*this, mutex, options};
  JobDesk jobs{mutex, connections};
};

}  // namespace taas::data
