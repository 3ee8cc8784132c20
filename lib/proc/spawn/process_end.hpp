#pragma once

#include <functional>

#include "base/error.hpp"

namespace boost::asio {
class io_context;
}

namespace taas {

/// Calls back once, from the event loop, when a process has ended that need not be a child of this one. An error when
/// there is none with this number. Needs Linux 5.3.
Result<> on_process_end(boost::asio::io_context& io, int pid, std::function<void()> callback);

}  // namespace taas
