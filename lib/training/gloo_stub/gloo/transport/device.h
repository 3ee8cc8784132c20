#pragma once

namespace gloo::transport {

class Device;
class UnboundBuffer;

/// Made and destroyed by gloo alone.
class Pair {
 public:
  virtual ~Pair() = 0;
};

}  // namespace gloo::transport
