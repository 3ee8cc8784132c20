#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace taas::node {

/// TAAS_EVENTS: a Unix datagram socket that processes of this machine report to. Senders never wait: what finds the
/// queue full is lost.
class EventSocket {
 public:
  static Result<EventSocket> open(boost::asio::io_context& io, const std::string& path,
                                  std::function<void(std::string_view)> on_datagram);
  ~EventSocket();
  EventSocket(EventSocket&&) noexcept;

  /// Passes on what is there at this moment: the last words of a process that has ended.
  void drain();

 private:
  struct State;
  explicit EventSocket(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace taas::node
