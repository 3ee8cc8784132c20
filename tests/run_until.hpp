#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>

namespace taas {

/// Runs the loop until the condition holds; false when nothing has happened in it for 20 seconds.
template <class Condition>
bool run_until(boost::asio::io_context& io, Condition condition) {
  while (!condition()) {
    io.restart();
    if (io.run_one_for(std::chrono::seconds(20)) == 0) return false;
  }
  return true;
}

}  // namespace taas
