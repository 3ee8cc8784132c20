#pragma once

#include <cstdint>
#include <string_view>

namespace taas {

/// Adds a line to the run's scalars, from rank 0; other ranks may call it too, and do nothing. The file is
/// $TAAS_OUTPUT_DIR/scalars-N.jsonl, N being the number of restarts so far, or one in the current folder without
/// taas-run. A line is {"wall_time": 1790000000.25, "step": 12, "name": "loss", "value": 0.25}: seconds since 1970, and
/// "NaN", "Infinity" or "-Infinity" for values that JSON has no number for. It is in the file when this returns, and
/// the file is published every ten seconds. May be called from any thread. Throws Exception, which names the file, when
/// it cannot be written.
void log_scalar(std::string_view name, double value, std::int64_t step);

}  // namespace taas
