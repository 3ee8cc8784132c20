#pragma once

#include <csignal>
#include <utility>

#include "run/scenario.hpp"

// How ranks of a first generation end.
namespace taas::run::ended_ranks {

inline const Generation kFirst{0};
inline constexpr ExitStatus kTerminated{0, SIGTERM};

inline void end(GenerationRecord& record, int rank, long when, ExitStatus status, Evidence evidence = {}) {
  record.exited({kFirst, Rank{rank}, status, std::move(evidence), at_ms(when)});
}

}  // namespace taas::run::ended_ranks
