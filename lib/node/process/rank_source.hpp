#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "plan/program/preload.hpp"
#include "proc/spawn/spawn.hpp"

namespace taas {
class Family;
class PreloadedPython;
}  // namespace taas

namespace taas::node {

struct RankSourceOptions {
  plan::PreloadChoice choice;
  std::vector<std::string> command;  ///< of ranks
  std::string hook_folder;           ///< of lib/python/preload; empty: not found
  std::optional<std::uint64_t> open_files_limit;
};

/// What the ranks of one node have in common, as variables.
struct CommonEnvironment {
  std::vector<std::string> variables;  ///< "NAME=value"
  std::vector<std::string> per_rank;   ///< names that each rank has its own value of
};

/// Where a node's ranks come from: a preloaded interpreter while there is one that fits, else fresh processes.
class RankSource {
 public:
  /// `remark` is told in one line why ranks are not preloaded after all, where that is news.
  RankSource(boost::asio::io_context& io, Family& family, RankSourceOptions options,
             std::function<void(std::string)> remark);
  ~RankSource();

  /// Calls back once ranks can be started: at once, or when the interpreter is ready or known to be of no use. A second
  /// call before that takes the place of the first. What ranks have in common is asked for where it matters only.
  void prepare(const std::function<CommonEnvironment()>& find_common, std::function<void()> go);
  /// Nobody wants to wait any longer: calls back now, and ranks are fresh processes.
  void hurry();
  /// What was asked for is not wanted any more: of ranks that were not handed over none is left. An interpreter that is
  /// on its way to being ready stays.
  void forget();

  using OnChild = std::function<void(std::size_t, Result<Child>)>;
  /// As taas::spawn(), one after the other until one fails, which is the last. Each is handed over as soon as it is
  /// there, so that whoever watches it sees ends in their order: before this returns, or from the event loop. What the
  /// requests point at is kept until then.
  void spawn(const std::vector<SpawnRequest>& requests, const OnChild& on_child);

 private:
  static void spawn_fresh(const std::vector<SpawnRequest>& requests, const OnChild& on_child);
  void start(const CommonEnvironment& common);
  void settle(const std::string& refusal);
  void give_up(const std::string& why);

  boost::asio::io_context& io_;
  Family& family_;
  RankSourceOptions options_;
  std::function<void(std::string)> remark_;
  std::function<void()> go_;
  std::unique_ptr<PreloadedPython> interpreter_;
  std::vector<std::string> variables_;  // of the interpreter
  bool settled_ = false;                // it has said whether it is ready
  bool given_up_ = false;
};

}  // namespace taas::node
