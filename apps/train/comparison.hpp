#pragma once

#include <vector>

#include "batch_source.hpp"
#include "options.hpp"
#include "step_times.hpp"
#include "taas/process_group.hpp"

namespace taas::train {

/// What --plot writes of a run whose steps took `seconds`. The two modes that cut a model are compared with what they
/// are made to beat, over the same batches: a pipeline with the model cut but not the batches, both with one device;
/// and the sizes of --split-size with each other.
Plot make_plot(const Options& options, const ProcessGroup& group, const BatchSource& source,
               std::vector<double> seconds);

}  // namespace taas::train
