#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas::data {

/// A connected stream socket that never blocks. Both functions return how many bytes went, 0 when none can now; an
/// error is the end of the connection.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual Result<std::size_t> read(std::span<std::byte> into) = 0;
  virtual Result<std::size_t> write(std::span<const iovec> parts) = 0;

  /// What was written may still be here. Sends what can be sent now.
  virtual Result<> flush() { return {}; }
  [[nodiscard]] virtual bool is_flushed() const { return true; }

  /// Sends a descriptor along with the first of these bytes. Only a Unix socket can.
  virtual Result<std::size_t> write_with(const Fd& descriptor, std::span<const iovec> parts);
  /// The next descriptor that came, or none.
  virtual Fd take_descriptor() { return {}; }
  /// Whether bytes could have been changed on the way without being noticed here.
  [[nodiscard]] virtual bool needs_checksum() const { return true; }
  /// So many bytes are awaited: the thread need not be woken for a few of them.
  virtual void expect(std::size_t bytes) { static_cast<void>(bytes); }
  [[nodiscard]] virtual const Fd& socket() const = 0;
};

std::unique_ptr<Transport> make_tcp_transport(Fd socket);
std::unique_ptr<Transport> make_unix_transport(Fd socket);

}  // namespace taas::data
