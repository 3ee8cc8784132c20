#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "taas/data.hpp"

namespace taas {

/// Copies batches to a device, on a stream of its own.
class DeviceCopies {
 public:
  /// A batch on its way, for finish() alone.
  struct Started {
    Tensors tensors;
    std::shared_ptr<void> event;
  };

  virtual ~DeviceCopies() = default;
  /// Asks for the copy. The batch may be let go then.
  virtual Started start(const Tensors& batch) = 0;
  /// The batch on the device, for all that this thread asks of the device from now on.
  virtual Tensors finish(Started started) = 0;
};

/// `device` is a GPU; without an index it is the one that the program uses now. Throws ConfigError when it is not
/// there.
std::shared_ptr<DeviceCopies> make_device_copies(c10::Device device);

}  // namespace taas
