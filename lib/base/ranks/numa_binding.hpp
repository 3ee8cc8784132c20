#pragma once

#include <boost/describe/enum.hpp>

namespace taas {

/// Which processors a rank may use: torchrun's --numa-binding.
enum class NumaBinding {
  kNone,         ///< all that the launcher may use
  kNode,         ///< those of the NUMA node that the rank's GPU is on
  kSocket,       ///< those of all nodes on that node's socket
  kExclusive,    ///< of the node's physical cores, an equal share for each of its ranks
  kCoreComplex,  ///< those of the node that share a last-level cache, another group for each of its ranks
};

// clang-format off
BOOST_DESCRIBE_ENUM(NumaBinding, kNone, kNode, kSocket, kExclusive, kCoreComplex)
// clang-format on

}  // namespace taas
