#pragma once

#include <memory>

#include "taas/data.hpp"
#include "training/data/data_loader_state.hpp"

namespace taas {

/// What a data worker knows of a loader.
struct KnownLoader {
  std::shared_ptr<DataLoader::State> state;
  SamplerOfRank sampler;  ///< of the first loop; may be empty
};

}  // namespace taas
