#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace taas {

/// gloo with an abort(), which torch's own leaves empty: what is under way on this rank fails at once, and the other
/// ranks see closed connections instead of waiting for their timeout.
class AbortableGloo : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::ProcessGroupGloo;
  void abort() override;
};

}  // namespace taas
