#pragma once

#include <compare>
#include <string>

namespace taas {

/// A number that means one thing: a Rank is never passed where a NodeIndex is wanted.
template <class Tag>
struct Id {
  int value = 0;
  friend auto operator<=>(const Id&, const Id&) = default;
};

using Rank = Id<struct RankTag>;              ///< global rank, 0..world_size-1
using NodeIndex = Id<struct NodeTag>;         ///< 0..nodes-1; the node's GROUP_RANK
using Generation = Id<struct GenerationTag>;  ///< 0 for the first start of all ranks; a restart makes the next

/// A name for one run that sorts by time and does not collide: "20260102-030405-1a2b3c".
std::string make_run_id();

/// This machine since its start, as the kernel names it; empty where it does not say.
std::string boot_id();

/// 2*bytes hexadecimal digits from the kernel's random source.
std::string random_hex(int bytes);

}  // namespace taas
