#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace taas::run {

/// A collective that a rank has called.
struct CollectiveCall {
  std::int64_t number = 0;      ///< counted by its group, from 1: the same on all ranks while they make the same calls
  std::string operation;        ///< "all_reduce"
  std::string shape;            ///< of its input: "[256, 4] float32"
  std::string dtype;            ///< of its input; empty: there are several, or none
  std::int64_t bytes = 0;       ///< of its input
  std::string where;            ///< the user's line that called it, "train.py:31"; empty: not known
  bool completed = false;       ///< gloo does not say so, ...
  bool blocking = false;        ///< ... but there a call has ended when the next one is made
  std::int64_t timeout_ms = 0;  ///< 0: not known
  bool started = false;  ///< the GPU has begun it. Only ProcessGroupNCCL says so, with TORCH_NCCL_ENABLE_TIMING=1
};

/// The last calls of a rank in one process group, oldest first.
struct CollectiveGroup {
  std::string name;
  std::string description;   ///< "default_pg"; empty in old versions
  std::vector<int> members;  ///< global ranks; empty: not known
  std::vector<CollectiveCall> calls;
};

// clang-format off
BOOST_DESCRIBE_STRUCT(CollectiveCall, (), (number, operation, shape, dtype, bytes, where, completed, blocking, timeout_ms, started))
BOOST_DESCRIBE_STRUCT(CollectiveGroup, (), (name, description, members, calls))
// clang-format on

/// Reads what torch's flight recorder has written of one rank (a pickle, versions 2.0 to 2.10 of its format): of each
/// group the last `most` collectives. Point-to-point calls are left out. Nothing when the text is no such record.
std::optional<std::vector<CollectiveGroup>> read_flight_record(std::string_view bytes, std::size_t most);

}  // namespace taas::run
