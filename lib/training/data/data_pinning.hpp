#pragma once

#include "taas/data.hpp"

namespace taas {

/// The tensors in memory of torch's pinned allocator: themselves where they are in it, copies otherwise. As they are as
/// long as the program uses no GPU.
Tensors pinned(Tensors tensors);

}  // namespace taas
