#pragma once

#include <string>
#include <vector>

#include "taas/process_group.hpp"

namespace taas {

/// What a rank tells the others before they choose a backend.
struct BackendOffer {
  Backend wish = Backend::kAuto;
  std::string gpu;      ///< the one that it would use, by a name that no other GPU of the run has; empty: it has none
  std::string problem;  ///< why it has none although its machine has GPUs; else empty
};

std::string print_offer(const BackendOffer& offer);
/// Throws ConfigError: the other side is another release.
BackendOffer parse_offer(const std::string& text);

struct BackendChoice {
  bool nccl = false;
  std::string reason;  ///< why gloo, where a rank has a GPU; empty: somebody asked for it, or there is no GPU
};

/// By rank. Left alone, ranks take nccl when each has a GPU of its own. Throws ConfigError naming two ranks: when one
/// asks for nccl and another one cannot, or will not.
BackendChoice choose_backend(const std::vector<BackendOffer>& offers);

/// Which of the visible GPUs is this rank's first: the first one where it sees no more than its own, else that of its
/// local rank. -1: there are too few.
int gpu_index(int local_rank, int visible, int devices_per_rank = 1);

}  // namespace taas
