#pragma once

#include "run/events/generation.hpp"
#include "run/verdict/fatal_error.hpp"

namespace taas::run {

/// How well a failure explains the end of the generation.
enum class Strength {
  kNone,       ///< it does not: the launcher stopped the rank
  kLostPeer,   ///< the rank itself says that another one is to blame
  kNamesPeer,  ///< the same, and it says which one
  kLater,      ///< ended after the launcher began to stop, but not in the way a stopped rank ends
  kStruck,     ///< the same, by a signal that nobody here has sent
  kLostNode,   ///< a node that was heard of after the launcher began to stop
  kTold,       ///< had told a fatal error long before it was stopped
  kOwn,        ///< failed by itself
};

struct Candidate {
  Rank rank;
  Strength strength = Strength::kNone;
  Instant cause_at{};
  FatalError error;
  const NodeLost* node = nullptr;  // the culprit is no rank, but a node that went away
};

/// The failure that explains the end of the generation best; of two that explain it equally well, the earlier one.
Candidate find_culprit(const GenerationRecord& generation);

/// The rank ended as one that the launcher stopped or killed.
bool ended_by_us(const RankRecord& record, const GenerationRecord& generation);

/// It says that another one is to blame, and nothing says that it is wrong. `by_us`: see above.
bool only_lost_a_peer(const RankRecord& record, const FatalError& error, bool by_us);

/// Others may wait in vain for a rank that has ended well.
bool somebody_finished_early(const GenerationRecord& generation);

}  // namespace taas::run
