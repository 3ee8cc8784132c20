#include <limits>

#include "flags/setters.hpp"

namespace taas::cli {
namespace {

using Origin = Flag::Origin;
constexpr auto kLeastNodeTimeout = std::chrono::milliseconds(500);  // below it a busy machine looks like a lost one

Result<> store_node_timeout(plan::Options& options, const std::string& text) {
  auto seconds = read_seconds(text);
  if (!seconds) return seconds.error();
  if (*seconds < kLeastNodeTimeout)
    return usage_error("less than 0.5 seconds: a busy machine would look like a lost one");
  options.nodes.node_timeout = *seconds;
  return {};
}

constexpr Flag kNodesFlags[] = {
    {"hosts", 0, "LIST", "Machines for ssh, with the most ranks of each if you like: a,b:8,user@c,[::1]:2",
     [](auto& options, const auto& values) { return store_checked(options.nodes.hosts, values.back(), check_hosts); },
     Origin::kOwn, Flag::Kind::kCommaList},
    {"hostfile", 0, "FILE", "The same, one machine a line: name, name:8 or name slots=8",
     [](auto& options, const auto& values) { return store_filled(options.nodes.hostfile, values.back()); },
     Origin::kOwn},
    {"spares", 0, "N", "Further nodes that stand by and replace a lost one at once (default: 0)",
     [](auto& options, const auto& values) {
       return store(options.nodes.spares, read_integer(values.back(), 0, std::numeric_limits<int>::max()));
     },
     Origin::kOwn},
    {"interface", 0, "NAME", "Network interface between nodes (default: found out by trying all addresses)",
     [](auto& options, const auto& values) {
       options.nodes.interface = values.back();
       return Result<>();
     },
     Origin::kOwn},
    {"token-file", 0, "FILE", "Secret of nodes that join with --rdzv-endpoint or --node-rank (default: $TAAS_TOKEN)",
     [](auto& options, const auto& values) { return store_filled(options.nodes.token_file, values.back()); },
     Origin::kOwn},
    {"node-timeout", 0, "SECONDS", "A node that is silent for so long is given up (default: 30)",
     [](auto& options, const auto& values) { return store_node_timeout(options, values.back()); }, Origin::kOwn},
    {"join-timeout", 0, "SECONDS", "How long the least number of nodes is waited for (default: 600)",
     [](auto& options, const auto& values) { return store(options.nodes.join_timeout, read_seconds(values.back())); },
     Origin::kOwn},
    {"ssh", 0, "COMMAND", "Command in place of ssh, with options if you like (default: ssh)",
     [](auto& options, const auto& values) -> Result<> {
       if (values.back().find_first_not_of(' ') == std::string::npos) return usage_error("the command is empty");
       options.nodes.ssh_command = values.back();
       return {};
     },
     Origin::kOwn},
    {"remote-taas-run", 0, "PATH", "taas-run on the other machines (default: the path that it has here)",
     [](auto& options, const auto& values) { return store_filled(options.nodes.remote_taas_run, values.back()); },
     Origin::kOwn},
};

}  // namespace

FlagGroup nodes_flags() { return {"Machines", kNodesFlags}; }

}  // namespace taas::cli
