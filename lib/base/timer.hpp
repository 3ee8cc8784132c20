#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "base/clock.hpp"

namespace taas {

/// One deadline at a time: setting it again replaces the former one, which is then never told. Destroying the timer,
/// from its own callback too, ends it.
class Timer {
 public:
  Timer(boost::asio::io_context& io, std::function<void()> on_expired);
  ~Timer();

  void set(Instant deadline);
  void clear();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace taas
