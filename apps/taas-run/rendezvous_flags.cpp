#include <algorithm>
#include <limits>

#include "plan/numbers.hpp"
#include "plan/rendezvous.hpp"
#include "setters.hpp"

namespace taas::cli {
namespace {

using Origin = Flag::Origin;
constexpr int kLastPort = 65535;

Result<> store_node_rank(plan::Options& options, const std::string& text) {
  if (auto stored = store(options.rendezvous.node_rank, read_integer(text, 0, std::numeric_limits<int>::max()));
      !stored) {
    return stored;
  }
  if (options.rendezvous.node_rank == 0) return {};
  return usage_error("more machines come with a later version of taas-run: this one runs on one machine");
}

Result<> check_pairs(plan::Options& options, const std::string& text) {
  if (text.empty()) return {};
  auto pairs = plan::split(text, ',');
  bool valid = std::all_of(pairs.begin(), pairs.end(), [](std::string_view pair) {
    auto equals = pair.find('=');
    return equals != pair.npos && equals > 0;
  });
  if (!valid) return usage_error("not a list of KEY=VALUE,KEY=VALUE");
  return note_without_effect(options, "--rdzv-conf");
}

constexpr Flag kFlags[] = {
    {"standalone", 0, "", "Ignore --rdzv-endpoint, --rdzv-id and --master-port: all are chosen anew",
     [](auto& options, const auto& values) {
       return store(options.rendezvous.standalone, read_switch(values.back()));
     }},
    {"rdzv-backend", 0, "NAME", "static or c10d, which are the same on one machine",
     [](auto& options, const auto& values) {
       return store_checked(options.rendezvous.backend, values.back(), plan::check_backend);
     }},
    {"rdzv-endpoint", 0, "HOST:PORT", "The port is the store's, and MASTER_PORT (default: any free port)",
     [](auto& options, const auto& values) {
       return store_checked(options.rendezvous.endpoint, values.back(), plan::check_endpoint);
     }},
    {"rdzv-id", 0, "ID", "Name of the run, and of its folder (default: the time and a random number)",
     [](auto& options, const auto& values) {
       options.rendezvous.run_id = values.back();
       return Result<>();
     }},
    {"rdzv-conf", 0, "K=V,...", "No effect: nothing is left to configure",
     [](auto& options, const auto& values) { return check_pairs(options, values.back()); }},
    {"node-rank", 0, "0", "On one machine only 0 exists",
     [](auto& options, const auto& values) { return store_node_rank(options, values.back()); }},
    {"master-addr", 0, "HOST", "This machine, by any of its names; ranks get 127.0.0.1",
     [](auto& options, const auto& values) {
       options.rendezvous.master_addr = values.back();
       return Result<>();
     }},
    {"master-port", 0, "PORT", "Port of the store, and MASTER_PORT (default: any free port)",
     [](auto& options, const auto& values) {
       return store(options.rendezvous.master_port, read_integer(values.back(), 0, kLastPort));
     }},
    {"local-addr", 0, "HOST", "No effect: ranks of one machine meet on its loopback interface",
     [](auto& options, const auto&) { return note_without_effect(options, "--local-addr"); }},
    {"store", 0, "WHO", "Who serves the store: agent (taas-run itself) or rank0 (default: agent)",
     [](auto& options, const auto& values) -> Result<> {
       options.rendezvous.store_on_rank0 = values.back() == "rank0";
       if (values.back() == "rank0" || values.back() == "agent") return {};
       return usage_error("not agent or rank0");
     },
     Origin::kOwn},
};

}  // namespace

FlagGroup rendezvous_flags() { return {"Rendezvous", kFlags}; }

}  // namespace taas::cli
