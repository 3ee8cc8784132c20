#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/environment/environment.hpp"
#include "base/ids.hpp"
#include "node/process/private_folder.hpp"
#include "node/timers/timer_file.hpp"

namespace taas::node {

/// Timers that ranks set, torchrun's TORCHELASTIC_ENABLE_FILE_TIMER: whose process is signalled when one expires, and
/// what is known of that when the rank has ended.
class NodeTimers {
 public:
  struct Callbacks {
    std::function<std::optional<Rank>(int pid)> find_rank;  ///< whose own process this is
    std::function<void(std::string text)> remark;
  };

  /// Null: the environment asks for none.
  static Result<std::unique_ptr<NodeTimers>> open(boost::asio::io_context& io, const Environment& environment,
                                                  Callbacks callbacks);
  NodeTimers(const NodeTimers&) = delete;
  NodeTimers& operator=(const NodeTimers&) = delete;

  [[nodiscard]] const std::string& path() const { return file_->path(); }
  /// Timers of the former generation are not heeded any more.
  void begin_generation();
  /// The scope of the rank's timer that has expired in this generation.
  [[nodiscard]] std::optional<std::string> expired(Rank rank) const;

 private:
  explicit NodeTimers(Callbacks callbacks) : callbacks_(std::move(callbacks)) {}
  void expire(const run::FileTimer& timer);

  Callbacks callbacks_;
  std::optional<PrivateFolder> folder_;  // where the environment names no file
  std::unique_ptr<TimerFile> file_;
  std::map<Rank, std::string> expired_;
};

}  // namespace taas::node
