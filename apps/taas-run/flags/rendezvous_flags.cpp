#include <limits>

#include "base/environment/environment.hpp"
#include "base/text.hpp"
#include "flags/setters.hpp"
#include "plan/launch_mode/rendezvous.hpp"

namespace taas::cli {
namespace {

using Origin = Flag::Origin;
constexpr int kLastPort = 65535;

/// One KEY=VALUE of --rdzv-conf. Whether it has a meaning here.
Result<bool> read_pair(plan::NodesOptions& nodes, std::string_view key, std::string_view value) {
  if (key == "join_timeout" || key == "last_call_timeout") {
    auto seconds = read_seconds(value);
    if (!seconds) return std::move(seconds).error().with(key);
    (key == "join_timeout" ? nodes.join_timeout : nodes.elastic_wait) = *seconds;
    return true;
  }
  if (key != "is_host") return false;
  auto is_host = read_switch(value);
  if (!is_host) return std::move(is_host).error().with(key);
  nodes.is_host = *is_host;
  return true;
}

Result<> read_configuration(plan::Options& options, const std::string& text) {
  if (text.empty()) return {};
  bool all = true;
  for (auto pair : split(text, ',')) {
    if (trim(pair).empty()) continue;
    auto setting = split_assignment(pair);
    if (!setting) return usage_error("not a list of KEY=VALUE,KEY=VALUE");
    auto known = read_pair(options.nodes, trim(setting->first), trim(setting->second));
    if (!known) return known.error();
    all = all && *known;
  }
  return all ? Result<>() : note_without_effect(options, "--rdzv-conf");
}

constexpr Flag kRendezvousFlags[] = {
    {"standalone", 0, "", "Ignore --rdzv-endpoint, --rdzv-id and --master-port: all are chosen anew",
     [](auto& options, const auto& values) {
       return store(options.rendezvous.standalone, read_switch(values.back()));
     }},
    {"rdzv-backend", 0, "static|c10d", "How nodes meet; the same on one machine",
     [](auto& options, const auto& values) {
       return store_checked(options.rendezvous.backend, values.back(), plan::check_backend);
     }},
    {"rdzv-endpoint", 0, "HOST:PORT", "Where nodes that join meet; on one machine the port is the store's",
     [](auto& options, const auto& values) {
       return store_checked(options.rendezvous.endpoint, values.back(), plan::check_endpoint);
     }},
    {"rdzv-id", 0, "ID", "Name of the run, and of its folder (default: the time and a random number)",
     [](auto& options, const auto& values) {
       options.rendezvous.run_id = values.back();
       return Result<>();
     }},
    {"rdzv-conf", 0, "K=V,...", "join_timeout, last_call_timeout, is_host; others have no effect",
     [](auto& options, const auto& values) { return read_configuration(options, values.back()); }, Origin::kTorchrun,
     Flag::Kind::kCommaList},
    {"node-rank", 0, "N", "Which of --nnodes nodes this one is; the others run the same command",
     [](auto& options, const auto& values) {
       return store(options.rendezvous.node_rank, read_integer(values.back(), 0, std::numeric_limits<int>::max()));
     }},
    {"master-addr", 0, "HOST", "Node 0, where the others meet; on one machine any of its names",
     [](auto& options, const auto& values) {
       options.rendezvous.master_addr = values.back();
       return Result<>();
     }},
    {"master-port", 0, "PORT", "Port of the meeting, or of the store, and MASTER_PORT (default: any free port)",
     [](auto& options, const auto& values) {
       return store(options.rendezvous.master_port, read_integer(values.back(), 0, kLastPort));
     }},
    {"local-addr", 0, "HOST", "Name or address by which other nodes reach this one (default: found out)",
     [](auto& options, const auto& values) {
       options.rendezvous.local_addr = values.back();
       if (values.back().empty()) options.rendezvous.local_addr.reset();
       return Result<>();
     }},
    {"store", 0, "agent|rank0", "Who serves the store: taas-run itself, or rank 0 (default: agent)",
     [](auto& options, const auto& values) -> Result<> {
       options.rendezvous.store = values.back() == "rank0" ? plan::StoreHost::kRankZero : plan::StoreHost::kLauncher;
       if (values.back() == "rank0" || values.back() == "agent") return {};
       return usage_error("not agent or rank0");
     },
     Origin::kOwn},
};

}  // namespace

FlagGroup rendezvous_flags() { return {"Rendezvous", kRendezvousFlags}; }

}  // namespace taas::cli
