#include <fmt/format.h>

#include <limits>
#include <utility>

#include "flags/setters.hpp"

namespace taas::cli {
namespace {

using Kind = Flag::Kind;
using Origin = Flag::Origin;

Result<> use_signals(plan::Options& options, std::string_view text) {
  auto signals = read_signals(text);
  if (!signals) return signals.error();
  options.supervision.signals_to_handle = std::move(signals->known);
  for (const auto& name : signals->unknown) {
    options.without_effect.push_back(fmt::format("{} in --signals-to-handle, which is not a signal", name));
  }
  return {};
}

constexpr Flag kSupervisionFlags[] = {
    {"max-restarts", 0, "N", "Restarts of all ranks after a failure (default: 0)",
     [](auto& options, const auto& values) {
       return store(options.supervision.max_restarts, read_integer(values.back(), 0, std::numeric_limits<int>::max()));
     }},
    {"monitor-interval", 0, "SECONDS",
     "From one start of all ranks to the next, at least (default: after failures at the start 1, 2, 4 ... 30)",
     [](auto& options, const auto& values) {
       return store(options.supervision.monitor_interval, read_seconds(values.back()));
     }},
    {"shutdown-timeout", 0, "SECONDS", "From asking ranks to stop to killing them (default: 30)",
     [](auto& options, const auto& values) {
       return store(options.supervision.shutdown_timeout, read_seconds(values.back()));
     }},
    {"leftover-timeout", 0, "SECONDS",
     "How long processes that ranks leave behind may go on after success (default: 300)",
     [](auto& options, const auto& values) {
       return store(options.supervision.leftover_timeout, read_seconds(values.back()));
     },
     Origin::kOwn},
    {"exit-timeout", 0, "SECONDS|off", "For a rank that has raised to end: then it counts as failed (default: 30)",
     [](auto& options, const auto& values) {
       bool off = values.back() == "off";
       return store(
           options.supervision.exit_timeout,
           off ? Result<std::chrono::milliseconds>(std::chrono::milliseconds(0)) : read_seconds(values.back()));
     },
     Origin::kOwn},
    {"signals-to-handle", 0, "NAMES", "Signals that stop the run (default: SIGTERM,SIGINT,SIGHUP,SIGQUIT)",
     [](auto& options, const auto& values) { return use_signals(options, values.back()); }, Origin::kTorchrun,
     Kind::kCommaList},
    {"end-with", 0, "PID", "Kill the run when this process has ended: for programs that start taas-run",
     [](auto& options, const auto& values) {
       return store(options.supervision.end_with, read_integer(values.back(), 1, std::numeric_limits<int>::max()));
     },
     Origin::kOwn},
    {"event-log-handler", 0, "null", "Only null: events are in the run's journal",
     [](auto&, const auto& values) -> Result<> {
       if (values.back() == "null") return {};
       return usage_error("handlers are Python plug-ins of torchrun; the events of a run are in its journal.jsonl");
     }},
};

}  // namespace

FlagGroup supervision_flags() { return {"Restarts and signals", kSupervisionFlags}; }

}  // namespace taas::cli
