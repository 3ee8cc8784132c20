#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/exit_status.hpp"

namespace taas {
class Family;
}

namespace taas::launch {

/// A command that puts an agent onto a host and stays until the agent ends: ssh, srun, or the launcher itself.
class HostCommand {
 public:
  struct Options {
    std::vector<std::string> argv;
    std::vector<std::string> environment;
    std::string input;                                   ///< for its standard input, which is then closed
    std::optional<std::uint64_t> open_files_limit = {};  ///< to restore, where the launcher raised its own
    bool spared = false;                                 ///< no part of a generation: what ends one passes it by
    std::function<void(const std::string&)> on_line = [](const std::string&) {};  ///< told what it prints
  };
  /// `on_end` comes once: how it ended, and the last lines it printed.
  using OnEnd = std::function<void(ExitStatus status, std::vector<std::string> last_lines)>;

  static Result<std::unique_ptr<HostCommand>> start(boost::asio::io_context& io, Family& family, Options options,
                                                    OnEnd on_end);
  ~HostCommand();

  void signal(int number);
  [[nodiscard]] bool running() const;

 private:
  struct State;
  explicit HostCommand(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace taas::launch
