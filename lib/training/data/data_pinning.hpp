#pragma once

#include "data/client/client.hpp"
#include "taas/data.hpp"

namespace taas {

/// Registers a client's memory with CUDA, once the program uses a GPU; initialises none. To be called for each batch.
void pin_memory_of(data::Client& client);

/// The tensors in page-locked memory: themselves where they are in it, copies otherwise. As they are without a GPU.
Tensors pinned(Tensors tensors);

}  // namespace taas
