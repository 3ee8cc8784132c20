#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/fd.hpp"
#include "proc/spawn/spawn.hpp"

namespace taas {

class Family;

/// What an order needs of the interpreter that it goes to; all of it outlives the order's end.
struct PreloadedLink {
  boost::asio::io_context& io;
  Family& family;
  const Fd& socket;
  boost::asio::posix::stream_descriptor& watched;  ///< a duplicate of `socket`
};

/// Ranks that are wanted of a preloaded interpreter (lib/python/preload/taas_preload/server.py), and how far they are:
/// it forks one after the other, gives them away to this process, and each goes on when it is told. Every step follows
/// an answer, and the event loop never waits for one: on a busy machine they take seconds.
class ForkRequest : public std::enable_shared_from_this<ForkRequest> {
 public:
  using OnChild = std::function<void(std::size_t, Result<Child>)>;
  /// Success: the interpreter is free for the next order. An error is the interpreter's own: it is of no use any more,
  /// nothing was handed over and no process is left.
  using OnEnd = std::function<void(Result<>)>;

  ForkRequest(PreloadedLink link, std::vector<SpawnRequest> requests, OnChild on_child, OnEnd on_end);

  void begin() { ask(); }
  /// No process is handed over any more, none is left, and the end is not told. False: the interpreter was just
  /// forking, and is of no use any more.
  bool cancel();

 private:
  enum class Phase { kForking, kReleasing, kLettingGo, kOver };

  /// A process that was forked and waits for the word.
  struct Born {
    int pid = -1;
    Fd control;
    Fd end;  // of watch_child(), once it is our child
  };

  void ask();
  Result<> ask_for(const SpawnRequest& request);
  void hear();
  void released();
  Result<> claim(Born& born);
  void let_go();
  void hear_rank();
  void hand_over(const Result<>& gone_on);
  void await(boost::asio::posix::stream_descriptor& descriptor, void (ForkRequest::*then)());
  void run_out_of_patience();
  void discard_rest();
  void end(Result<> how);

  PreloadedLink link_;
  std::vector<SpawnRequest> requests_;
  OnChild on_child_;
  OnEnd on_end_;
  boost::asio::steady_timer patience_;
  Phase phase_ = Phase::kForking;
  Fd control_;                                                   // of the one that is being forked
  std::vector<Born> born_;                                       // in the order of the requests
  std::size_t next_ = 0;                                         // of `born_`, to be handed over
  std::optional<boost::asio::posix::stream_descriptor> answer_;  // a duplicate of its `control`
};

}  // namespace taas
