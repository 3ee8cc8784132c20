#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "taas/graphed_step.hpp"

namespace taas {
namespace {

/// What `later` is given from now on comes after what `earlier` has been given.
void order_streams(const c10::Stream& earlier, const c10::Stream& later) {
  c10::Event event(earlier.device_type());
  event.record(earlier);
  event.block(later);
}

}  // namespace

struct OwnStream::Impl {
  explicit Impl(c10::Device device)
      : gpu(device.type()), before(gpu.getStream(device)), own(gpu.getStreamFromGlobalPool(device)) {
    order_streams(before, own);
    gpu.exchangeStream(own);
  }
  ~Impl() {
    order_streams(own, before);
    gpu.exchangeStream(before);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  c10::impl::VirtualGuardImpl gpu;
  c10::Stream before;
  c10::Stream own;
};

OwnStream::OwnStream(c10::Device device) {
  if (!device.is_cpu()) impl_ = std::make_unique<Impl>(device);
}
OwnStream::~OwnStream() = default;

}  // namespace taas
