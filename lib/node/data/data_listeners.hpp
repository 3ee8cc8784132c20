#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas::node {

/// Where one data worker is reached. The launcher's own, so that a worker that dies and its successor have one address;
/// who connects in between waits in the kernel's queue.
struct DataListeners {
  Fd tcp;
  std::uint16_t port = 0;
  Fd unix_stream;
  std::string unix_path;
};

/// `address` is numeric; the port is the kernel's choice.
Result<DataListeners> open_data_listeners(boost::asio::io_context& io, const std::string& address,
                                          std::string unix_path);

}  // namespace taas::node
