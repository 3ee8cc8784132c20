#pragma once

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

namespace taas {

/// Which CPUs a rank may use, by what lies near its GPU; torchrun's modes.
enum class NumaBinding {
  kNone,
  kNode,         ///< those of the GPU's NUMA node
  kSocket,       ///< those of all NUMA nodes of its socket
  kExclusive,    ///< cores of its NUMA node that no other rank has
  kCoreComplex,  ///< one group of cores of its NUMA node that share a cache of the last level
};

/// By its name in --numa-binding; nothing for another text.
inline std::optional<NumaBinding> numa_binding_of(std::string_view name) {
  constexpr std::pair<std::string_view, NumaBinding> kModes[] = {{"node", NumaBinding::kNode},
                                                                 {"socket", NumaBinding::kSocket},
                                                                 {"exclusive", NumaBinding::kExclusive},
                                                                 {"core-complex", NumaBinding::kCoreComplex}};
  const auto* found = std::ranges::find(kModes, name, &std::pair<std::string_view, NumaBinding>::first);
  return found == std::end(kModes) ? std::nullopt : std::optional(found->second);
}

}  // namespace taas
