#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/disk_thread.hpp"
#include "base/folders/held_folder.hpp"
#include "base/timer.hpp"
#include "run/messages/messages.hpp"

namespace taas::node {

/// The wish to stop, as ranks find it: programs that poll find a file; those that handle a signal look for the file
/// then. So signals wait until it is on disk, unless the disk is slow.
class StopWish {
 public:
  using Signal = std::function<void(const run::SignalRanks&)>;
  StopWish(boost::asio::io_context& io, DiskThread& disk, Signal send, std::function<void(std::string)> remark)
      : disk_(disk), send_(std::move(send)), remark_(std::move(remark)), held_until_(io, [this] { let_go(); }) {}

  /// Makes the file, in place of what else may have its name.
  void tell(const HeldPath& file);
  /// Sends the signal now, or as soon as the file is made.
  void pass(const run::SignalRanks& signal);

 private:
  void let_go();

  DiskThread& disk_;
  Signal send_;
  std::function<void(std::string)> remark_;
  bool telling_ = false;
  std::vector<run::SignalRanks> held_;
  Timer held_until_;
};

}  // namespace taas::node
