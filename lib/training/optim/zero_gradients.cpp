#include <torch/optim/optimizer.h>

#include "taas/recordable_optimizer.hpp"

namespace taas::detail {

/// libtorch's detaches each gradient in place, which views refuse.
void zero_gradients(torch::optim::Optimizer& optimizer, bool set_to_none) {
  for (auto& group : optimizer.param_groups()) {
    for (auto& parameter : group.params()) {
      auto& gradient = parameter.mutable_grad();
      if (!gradient.defined()) continue;
      if (set_to_none) {
        gradient.reset();
        continue;
      }
      if (gradient.requires_grad()) gradient = gradient.detach();  // of a backward with create_graph
      gradient.zero_();
    }
  }
}

}  // namespace taas::detail
