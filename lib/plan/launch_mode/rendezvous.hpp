#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "plan/launch_mode/launch_mode.hpp"
#include "plan/options/options.hpp"

namespace taas::plan {

/// A value of --rdzv-endpoint.
struct Endpoint {
  std::string_view host;  ///< IPv6 without brackets; may be empty
  std::optional<int> port;
};

/// "host", "host:port", "[v6]:port" and a bare IPv6 address; nothing where the port is no port.
std::optional<Endpoint> read_endpoint(std::string_view text);

/// Whether a name can only be the machine that reads it.
bool is_loopback(std::string_view host);

/// Where nodes that join meet: the endpoint, or --master-addr and --master-port, as under torchrun.
struct MeetingPoint {
  std::string host;  ///< IPv6 without brackets; this machine where nothing was said
  int port = 0;      ///< as it was said, or torchrun's for such a place
  std::string flag;  ///< that said the port, for messages
};
Result<MeetingPoint> read_meeting_point(const RendezvousOptions& options);

/// Whether a text can be a value of --rdzv-endpoint, and of --rdzv-backend; the errors do not name the flag.
Result<> check_endpoint(std::string_view text);
Result<> check_backend(std::string_view text);

/// What remains of torchrun's rendezvous flags once the way is known: the store's port and a run id. On one machine the
/// port of the endpoint is the store's; nodes that join meet there, and the store has a port of its own.
Result<RendezvousOptions> decide_rendezvous(RendezvousOptions options, const LaunchMode& mode);

/// Whether ranks find a store of the launcher's at MASTER_ADDR and MASTER_PORT. A run of one process is an ordinary
/// process and has none: torch would have the workers that it starts look for their own store there, whatever address
/// they set. Where one of torchrun's flags says how nodes meet, it has torchrun's environment.
bool launcher_serves_store(const Options& options, int world_size);

}  // namespace taas::plan
