// What torch's ProcessGroupGloo.hpp names of gloo, for a wheel that ships the library but not its headers. Declarations
// only: the objects are made and used inside libtorch.
#pragma once

#include <chrono>
#include <memory>

#include "gloo/transport/device.h"

namespace gloo {

class Context {
 public:
  std::unique_ptr<transport::Pair>& getPair(int rank);
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
