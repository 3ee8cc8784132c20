#include "plan/rendezvous.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "plan/numbers.hpp"

namespace taas::plan {
namespace {

constexpr int kLastPort = 65535;
constexpr const char* kOneMachine = "more machines come with a later version of taas-run: this one runs on one machine";

struct Endpoint {
  std::string_view host;
  std::optional<int> port;
};

/// "host", "host:port", "[v6]:port" and a bare IPv6 address; nothing where the port is no port.
std::optional<Endpoint> read_endpoint(std::string_view text) {
  auto bracket = text.rfind(']');
  auto colon = text.rfind(':');
  bool bare_v6 = bracket == text.npos && text.find(':') != colon;
  if (colon == text.npos || bare_v6 || (bracket != text.npos && colon < bracket)) return Endpoint{text, std::nullopt};
  auto port = parse_integer(text.substr(colon + 1));
  if (!port || *port < 0 || *port > kLastPort) return std::nullopt;
  return Endpoint{text.substr(0, colon), port};
}

bool is_loopback(std::string_view host) {
  return host.empty() || host == "localhost" || host.starts_with("127.") || host == "::1" || host == "[::1]" ||
         host == "0:0:0:0:0:0:0:1" || host == "[0:0:0:0:0:0:0:1]";
}

Result<> check_one_machine(const RendezvousOptions& options, const std::optional<Endpoint>& endpoint, int nodes) {
  if (options.node_rank.value_or(0) != 0) {
    return usage_error(fmt::format("--node-rank {}: {}", *options.node_rank, kOneMachine));
  }
  if (nodes == 1) return {};  // then every name in these flags can only be this machine's
  if (options.node_rank) return usage_error(fmt::format("--nnodes {} with --node-rank: {}", nodes, kOneMachine));
  if (options.master_addr && !is_loopback(*options.master_addr)) {
    return usage_error(fmt::format("--nnodes {} with --master-addr {}: {}", nodes, *options.master_addr, kOneMachine));
  }
  if (endpoint && !is_loopback(endpoint->host)) {
    return usage_error(fmt::format("--nnodes {} with --rdzv-endpoint {}: {}", nodes, *options.endpoint, kOneMachine));
  }
  return {};
}

}  // namespace

Result<> check_endpoint(std::string_view text) {
  if (read_endpoint(text)) return {};
  return usage_error(fmt::format("the port is not a number up to {}; say localhost:29500", kLastPort));
}

Result<> check_backend(std::string_view text) {
  if (text == "static" || text == "c10d") return {};
  return usage_error("not available; static and c10d are");
}

Result<RendezvousOptions> decide_rendezvous(RendezvousOptions options, int nodes) {
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
  if (auto one = check_one_machine(options, endpoint, nodes); !one) return one.error();
  if (endpoint && endpoint->port) options.master_port = endpoint->port;
  if (int port = options.master_port.value_or(0); port < 0 || port > kLastPort) {
    return usage_error(fmt::format("--master-port {}: not a port; 0 lets the kernel choose", port));
  }
  return options;
}

}  // namespace taas::plan
