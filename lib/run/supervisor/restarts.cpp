#include "run/supervisor/restarts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace taas::run {
namespace {

/// A lost node that another one replaces is no failure of the program.
bool costs_a_restart(const Verdict& verdict, const GenerationRecord& record) {
  if (verdict.cause != Cause::kNodeLost) return true;
  const auto& lost = record.lost_nodes();
  return std::any_of(lost.begin(), lost.end(), [](const NodeLost& node) { return !node.replaceable; });
}

}  // namespace

/// It raised an exception, and no rank had talked to the store: a program that fails so would only fail again. A
/// signal, or an exit code that the program chose, may have any reason.
bool Restarts::failed_at_start(const Verdict& verdict, const GenerationRecord& record) const {
  bool raised = verdict.cause == Cause::kException && policy_.startup_needs_store;
  return raised && !record.store_reached() && verdict.at - started_at_ < policy_.startup_window;
}

bool Restarts::allows(const Verdict& verdict, const GenerationRecord& record) const {
  bool curable = verdict.cause != Cause::kExecFailed && !failed_at_start(verdict, record);
  return curable && (used_ < policy_.max_restarts || !costs_a_restart(verdict, record));
}

int Restarts::use(const Verdict& verdict, const GenerationRecord& record) {
  return costs_a_restart(verdict, record) ? ++used_ : 0;
}

std::string Restarts::explain(const Verdict& verdict, const GenerationRecord& record) const {
  bool would_have = verdict.cause != Cause::kExecFailed && used_ < policy_.max_restarts;
  if (!would_have || !failed_at_start(verdict, record)) return verdict.hint;
  auto then = verdict.hint.empty() ? std::string("what fails while it starts fails again") : verdict.hint;
  return fmt::format("not restarted: no rank had reached the store; {}", then);
}

}  // namespace taas::run
