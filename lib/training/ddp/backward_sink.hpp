#pragma once

#include <torch/custom_class.h>

#include <memory>
#include <vector>

#include "training/ddp/reducer.hpp"

namespace taas {

/// What the sink has to know when backward reaches it.
struct SinkState : torch::CustomClassHolder {
  std::shared_ptr<Reducer> reducer;
  bool static_graph = false;
  bool clones = true;                     ///< outputs may be changed in place
  bool delayed_reduction_queued = false;  ///< static graph: done once, in the first backward
};

/// Passes `outputs` through a node of the graph where backward begins. It leaves the gradient of an output that is not
/// part of the loss undefined, not zero, so that the reducer can tell; and it queues the first reduction of a static
/// graph.
std::vector<at::Tensor> pass_through_sink(const c10::intrusive_ptr<SinkState>& state,
                                          const std::vector<at::Tensor>& outputs);

}  // namespace taas
