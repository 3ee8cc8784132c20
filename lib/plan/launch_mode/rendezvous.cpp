#include "plan/launch_mode/rendezvous.hpp"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "plan/options/numbers.hpp"

namespace taas::plan {
namespace {

constexpr int kLastPort = 65535;
// torchrun's, for --master-addr and for --rdzv-endpoint without a port.
constexpr int kStaticPort = 29500;
constexpr int kRendezvousPort = 29400;
constexpr const char* kThisMachine = "127.0.0.1";

std::string_view without_brackets(std::string_view host) {
  bool inside = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return inside ? host.substr(1, host.size() - 2) : host;
}

/// Whether one of torchrun's flags says how many nodes there are or where they meet.
bool names_meeting_point(const Options& options) {
  const auto& rendezvous = options.rendezvous;
  return options.size.nnodes || rendezvous.standalone || rendezvous.run_id || rendezvous.endpoint ||
         rendezvous.node_rank || rendezvous.master_addr || rendezvous.master_port ||
         rendezvous.backend != RendezvousOptions().backend;
}

std::string host_or_here(std::string_view host) { return std::string(host.empty() ? kThisMachine : host); }

}  // namespace

std::optional<Endpoint> read_endpoint(std::string_view text) {
  auto bracket = text.rfind(']');
  auto colon = text.rfind(':');
  bool bare_v6 = bracket == text.npos && text.find(':') != colon;
  if (colon == text.npos || bare_v6 || (bracket != text.npos && colon < bracket)) {
    return Endpoint{without_brackets(text), std::nullopt};
  }
  auto port = parse_integer(text.substr(colon + 1));
  if (!port || *port < 0 || *port > kLastPort) return std::nullopt;
  return Endpoint{without_brackets(text.substr(0, colon)), port};
}

bool is_loopback(std::string_view host) {
  host = without_brackets(host);
  return host.empty() || host == "localhost" || host.starts_with("127.") || host == "::1" || host == "0:0:0:0:0:0:0:1";
}

Result<> check_endpoint(std::string_view text) {
  if (read_endpoint(text)) return {};
  return usage_error(fmt::format("the port is not a number up to {}; say localhost:29500", kLastPort));
}

Result<> check_backend(std::string_view text) {
  if (text == "static" || text == "c10d") return {};
  return usage_error("not available; static and c10d are");
}

Result<MeetingPoint> read_meeting_point(const RendezvousOptions& options) {
  if (options.endpoint && !options.endpoint->empty()) {
    auto flag = fmt::format("--rdzv-endpoint {}", *options.endpoint);
    auto endpoint = read_endpoint(*options.endpoint);
    if (!endpoint) return std::move(check_endpoint(*options.endpoint)).error().with(flag);
    return MeetingPoint{host_or_here(endpoint->host), endpoint->port.value_or(kRendezvousPort), std::move(flag)};
  }
  auto address = options.master_addr.value_or("");
  return MeetingPoint{host_or_here(without_brackets(address)), options.master_port.value_or(kStaticPort),
                      fmt::format("--master-port {}", options.master_port.value_or(0))};
}

Result<RendezvousOptions> decide_rendezvous(RendezvousOptions options, const LaunchMode& mode) {
  if (options.standalone) {  // torchrun's word: explicitly set values are ignored
    options.run_id = options.endpoint = std::nullopt;
    options.master_port = std::nullopt;
    options.backend = "c10d";
  }
  if (auto valid = check_backend(options.backend); !valid) {
    return std::move(valid).error().with(fmt::format("--rdzv-backend {}", options.backend));
  }
  std::optional<Endpoint> endpoint;
  if (options.endpoint && !options.endpoint->empty()) {
    auto valid = check_endpoint(*options.endpoint);
    if (!valid) return std::move(valid).error().with(fmt::format("--rdzv-endpoint {}", *options.endpoint));
    endpoint = read_endpoint(*options.endpoint);
  }
  bool store_there = std::holds_alternative<OneMachine>(mode);
  if (store_there && endpoint && endpoint->port) options.master_port = endpoint->port;
  if (std::holds_alternative<Join>(mode)) options.master_port.reset();
  if (int port = options.master_port.value_or(0); port < 0 || port > kLastPort) {
    return usage_error(fmt::format("--master-port {}: not a port; 0 lets the kernel choose", port));
  }
  return options;
}

bool launcher_serves_store(const Options& options, int world_size) {
  if (options.rendezvous.store != StoreHost::kAny) return options.rendezvous.store == StoreHost::kLauncher;
  return world_size > 1 || names_meeting_point(options);
}

}  // namespace taas::plan
