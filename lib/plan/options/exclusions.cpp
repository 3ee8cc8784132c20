#include "plan/options/exclusions.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace taas::plan {
namespace {

using Flags = std::vector<std::string>;  // as the user would write them; those that were given

void add(Flags& flags, const char* flag, const std::optional<std::string>& value) {
  if (value && !value->empty()) flags.push_back(fmt::format("{} {}", flag, *value));
}

Flags host_flags(const Options& options) {
  Flags flags;
  add(flags, "--hosts", options.nodes.hosts);
  add(flags, "--hostfile", options.nodes.hostfile);
  return flags;
}

/// Flags by which a node says which of several it is, or where they meet.
Flags join_flags(const RendezvousOptions& options) {
  Flags flags;
  if (options.node_rank) flags.push_back(fmt::format("--node-rank {}", *options.node_rank));
  add(flags, "--rdzv-endpoint", options.endpoint);
  add(flags, "--master-addr", options.master_addr);
  return flags;
}

Flags submit_flags(const SlurmOptions& options) {
  Flags flags;
  if (options.detach) flags.emplace_back("--detach");
  if (options.staged) flags.emplace_back("--slurm-staged");
  add(flags, "--partition", options.partition);
  add(flags, "--account", options.account);
  add(flags, "--time", options.time);
  add(flags, "--gres", options.gres);
  for (const auto& option : options.options) flags.push_back("--slurm-option " + option);
  return flags;
}

Error exclude(const std::string& one, const std::string& other, std::string_view why) {
  return usage_error(fmt::format("{} and {} exclude each other: {}", one, other, why));
}

/// Two jobs, of which the second waits for what the first one prepares.
Result<> check_staged(const Options& options) {
  const auto& slurm = options.slurm;
  const auto& data = options.data;
  if (!slurm.staged && slurm.data_time) {
    return usage_error(
        fmt::format("--data-time {}: only with --slurm-staged, which gives the CPU machines a job of "
                    "their own",
                    *slurm.data_time));
  }
  if (!slurm.staged) return {};
  if (data.hosts) return exclude("--slurm-staged", "--data-hosts " + *data.hosts, "SLURM chooses the CPU machines");
  if (slurm.requeue) return exclude("--slurm-staged", "--requeue", "what is prepared would be gone");
  if (data.cpus.value_or(0) < 1) return usage_error("--slurm-staged: --cpus N has to say how many machines prepare");
  if (data.loader.empty()) return usage_error("--slurm-staged: --loader NAME has to say what is prepared");
  return {};
}

}  // namespace

Result<> check_exclusions(const Options& options) {
  auto hosts = host_flags(options);
  auto joins = join_flags(options.rendezvous);
  bool standalone = options.rendezvous.standalone;
  const auto& output = options.output;
  if (!output.unprotected.empty() && output.protected_directories.empty()) {
    return usage_error(fmt::format("--protect-except {}: only with --protect, which names what is protected",
                                   output.unprotected.front()));
  }
  if (hosts.size() == 2) return exclude(hosts[0], hosts[1], "one list of hosts is enough");
  if (standalone && !hosts.empty()) return exclude("--standalone", hosts[0], "the one is for this machine alone");
  if (standalone && options.slurm.submit)
    return exclude("--standalone", "--slurm", "the one is for this machine alone");
  if (options.slurm.submit && !hosts.empty()) return exclude("--slurm", hosts[0], "SLURM chooses the nodes");
  if (auto staged = check_staged(options); !staged) return staged;
  if (standalone || joins.empty()) return {};
  if (!hosts.empty()) return exclude(hosts[0], joins[0], "the nodes of a list do not have to find each other");
  if (options.slurm.submit) return exclude("--slurm", joins[0], "SLURM's nodes do not have to find each other");
  return {};
}

Result<> check_job_flags(const Options& options, bool in_job) {
  if (options.slurm.submit && options.slurm.requeue && !options.slurm.detach && !in_job) {
    return usage_error("--slurm --requeue: SLURM puts only batch jobs back into the queue; --detach submits one");
  }
  if (options.slurm.submit || in_job) return {};
  if (auto flags = submit_flags(options.slurm); !flags.empty()) {
    return usage_error(fmt::format("{}: only with --slurm, which submits a job", flags.front()));
  }
  if (options.slurm.requeue) return usage_error("--requeue: only in a job of SLURM");
  return {};
}

}  // namespace taas::plan
