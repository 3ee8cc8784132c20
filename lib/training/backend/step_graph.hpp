#pragma once

#include <functional>

namespace taas::detail {

/// A record of GPU work. The one for CUDA is in the plugin (cuda_step_graph.cpp); tests have one for the CPU.
class StepGraph {
 public:
  virtual ~StepGraph() = default;
  /// Records what `work` gives the current stream to do; nothing of it is done. What was recorded before is dropped.
  /// What `work` throws passes, and nothing is recorded then.
  virtual void record(const std::function<void()>& work) = 0;
  /// Does it, on the current stream.
  virtual void replay() = 0;
};

}  // namespace taas::detail
