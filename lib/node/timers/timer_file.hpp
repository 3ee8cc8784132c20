#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "run/agent/file_timers.hpp"

namespace taas::node {

/// TORCHELASTIC_TIMER_FILE: the named pipe into which processes of this node write the timers that they set and
/// release, with torch.distributed.elastic.timer's FileTimerClient. It is removed with this object.
class TimerFile {
 public:
  struct Callbacks {
    std::function<void(const run::FileTimer&)> on_expired;
    std::function<void(std::string)> on_warning;
  };

  /// A pipe there that nobody reads is replaced. Anything else of that name is an error that names it.
  static Result<std::unique_ptr<TimerFile>> open(boost::asio::io_context& io, std::string path, Callbacks callbacks);
  /// Whether another process reads a pipe of this name: a launcher around this one.
  static bool in_use(const std::string& path);
  ~TimerFile();

  [[nodiscard]] const std::string& path() const;
  /// The processes that have set timers are gone.
  void forget_all();

 private:
  struct State;
  explicit TimerFile(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace taas::node
