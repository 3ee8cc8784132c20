#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "proc/preload/fork_request.hpp"
#include "proc/spawn/spawn.hpp"

namespace taas {

class Family;

/// What an interpreter is started with from which ranks are forked.
struct PreloadRequest {
  std::vector<std::string> command;         ///< of ranks: the interpreter, its options, the program and its arguments
  std::size_t options = 1;                  ///< words of `command` before the program, at least the interpreter
  std::vector<std::string> environment;     ///< what all ranks have in common: "NAME=value"
  std::vector<std::string> modules;         ///< to be imported, in order
  std::vector<std::string> per_rank;        ///< variables that a module must not look at when it is imported
  std::vector<std::string> set_by_program;  ///< nor at these, which the program sets before it imports the module
  std::vector<std::string> read_at_load;    ///< beginnings of variables that libraries read when they are loaded
  std::vector<std::string> read_later;      ///< of these, of those that they read later
  std::string hook_folder;                  ///< absolute; where our sitecustomize.py is
  std::optional<std::uint64_t> open_files_limit;  ///< as in SpawnRequest
  std::vector<int> ignored_signals = {};          ///< the same, of ranks too
};

/// Owns a Python that has imported modules and waits where it would begin to run the program (lib/python/preload). It
/// and what is below it are spared by sweeps of the family. Destroying it kills it; ranks go on.
class PreloadedPython {
 public:
  /// Empty: ranks can be had. Else why not, for the user.
  using OnSettled = std::function<void(const std::string& refusal)>;

  /// Returns at once; `on_settled` is called once, from the event loop. The family outlives this.
  static Result<std::unique_ptr<PreloadedPython>> start(boost::asio::io_context& io, Family& family,
                                                        const PreloadRequest& request, OnSettled on_settled);
  ~PreloadedPython();

  /// It is ready and lives, as far as is known.
  [[nodiscard]] bool usable() const;
  /// As taas::spawn() for one after the other until one fails, which is the last; but without waiting: each is handed
  /// over from the event loop, as soon as it is there. One call at a time. Commands and environments are those of
  /// ranks; open_files_limit is the interpreter's. What the requests point at is kept until the end is told.
  void spawn(std::vector<SpawnRequest> requests, ForkRequest::OnChild on_child, ForkRequest::OnEnd on_end);
  /// Nothing more is handed over, nor is the end told; processes that were not handed over are ended.
  void cancel();

 private:
  struct State;
  explicit PreloadedPython(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace taas
