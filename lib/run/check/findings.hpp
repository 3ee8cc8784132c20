#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "run/check/node_facts.hpp"

namespace taas::run {

/// kError: ranks would fail, hang or train on something else than was meant. kWarning: they may.
enum class Severity { kError, kWarning };

/// What is wrong, where, and the way out.
struct Finding {
  Severity severity = Severity::kError;
  std::string code;                ///< of the rule, for programs: "socket_interface"
  std::vector<std::string> nodes;  ///< on which; empty: it is none's alone
  std::string text;
  std::string fix;
};

/// A node that was looked at, or a CPU machine.
struct ExaminedNode {
  std::string name;
  bool makes_data = false;  ///< it runs data workers, and no ranks
  NodeFacts facts;
  Duration clock{};                    ///< its wall clock beside the coordinator's steady one
  std::vector<std::string> unreached;  ///< names of nodes that it cannot reach, with the place that it tried
};

/// What `taas-run check` has found.
struct CheckReport {
  bool ok = true;  ///< no error
  std::vector<Finding> findings;
  std::vector<ExaminedNode> nodes;
};

/// All rules over all nodes, errors first. What is the same on several nodes is one finding. Where nodes differ, those
/// that differ from most are named.
std::vector<Finding> find_faults(const std::vector<ExaminedNode>& nodes);

/// "n1, n2: text; fix". `nodes` is how many were looked at.
std::string line_of(const Finding& finding, std::size_t nodes);

// clang-format off
BOOST_DESCRIBE_ENUM(Severity, kError, kWarning)
BOOST_DESCRIBE_STRUCT(Finding, (), (severity, code, nodes, text, fix))
BOOST_DESCRIBE_STRUCT(ExaminedNode, (), (name, makes_data, facts, clock, unreached))
BOOST_DESCRIBE_STRUCT(CheckReport, (), (ok, findings, nodes))
// clang-format on

}  // namespace taas::run
