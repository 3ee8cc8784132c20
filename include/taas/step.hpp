#pragma once

#include <cstdint>

namespace taas {

/// Tells the launcher that `count` steps of training are done. Call it once in each round of the loop, in every rank.
/// `taas-run top` and the live line then have the rate, and `taas-run look` since when there was no step. Nothing
/// depends on it: without taas-run, or where the file that TAAS_STEPS names cannot be made, it does nothing. For the
/// thread that trains: two may not call it at the same time. Costs some nanoseconds.
void step(std::uint64_t count = 1);

}  // namespace taas
