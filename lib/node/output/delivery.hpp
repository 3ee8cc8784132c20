#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "run/messages/messages.hpp"

namespace taas::node {

struct DeliveryOptions {
  std::string files;                                   ///< the folder of this machine's published files
  std::function<void(std::string frame)> send;         ///< run/messages/file_frames.hpp; lost when the link is
  std::function<void(const std::string&)> on_failure;  ///< told of each as it happens; tried again by settle()
};

/// Sends a node's published files to a coordinator that does not see its folder: one after the other, each whole and
/// with its newest content, in pieces that leave the link room for everything else. Files are read by a thread of its
/// own. Callbacks come in the event loop. To be destroyed before the loop.
class Delivery {
 public:
  Delivery(boost::asio::io_context& io, DeliveryOptions options);
  ~Delivery();

  /// This file has been published, perhaps again.
  void add(const std::string& name);
  /// There is a new link: the coordinator knows nothing of the file that was on its way.
  void begin_anew();
  void hear(const run::FileProgress& progress);
  void hear(const run::FileStored& stored);

  /// Nothing more will be added. `on_done` gets an empty text once all is on the coordinator's disk, or which file is
  /// not.
  void settle(std::function<void(std::string error)> on_done);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace taas::node
