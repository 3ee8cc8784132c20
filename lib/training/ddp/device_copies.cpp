#include "training/ddp/device_copies.hpp"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

#include "taas/error.hpp"
#include "training/backend/nccl.hpp"

namespace taas {
namespace {

/// By what all devices of torch have in common: nothing of CUDA is linked.
class StreamCopies : public DeviceCopies {
 public:
  explicit StreamCopies(c10::Device device)
      : guard_(device.type()),
        device_(device.has_index() ? device : guard_.getDevice()),
        stream_(guard_.getStreamFromGlobalPool(device_)) {}

  Started start(const Tensors& batch) override {
    const c10::StreamGuard on_stream(stream_);
    Started started;
    for (const auto& tensor : batch) {
      started.tensors.push_back(tensor.to(device_, tensor.scalar_type(), /*non_blocking=*/true));
    }
    auto event = std::make_shared<c10::Event>(device_.type());
    event->record(stream_);
    started.event = std::move(event);
    return started;
  }

  Tensors finish(Started started) override {
    auto stream = guard_.getStream(device_);
    static_cast<c10::Event*>(started.event.get())->block(stream);
    // The memory is the copying stream's, and this one uses it.
    for (const auto& tensor : started.tensors) guard_.recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
    return std::move(started.tensors);
  }

 private:
  c10::impl::VirtualGuardImpl guard_;
  c10::Device device_;
  c10::Stream stream_;
};

}  // namespace

std::shared_ptr<DeviceCopies> make_device_copies(c10::Device device) {
  auto name = device.str();
  if (!device.is_cuda()) throw ConfigError("batches can be copied to a GPU or stay on the CPU, not to " + name);
  int count = cuda_device_count();
  if (count == 0) {
    throw ConfigError("batches are to go to " + name +
                      ", but no GPU can be used here: leave DataLoaderOptions::device out, or see what nvidia-smi and "
                      "CUDA_VISIBLE_DEVICES say");
  }
  if (device.has_index() && device.index() >= count) {
    throw ConfigError("batches are to go to " + name + ", but the last GPU here is cuda:" + std::to_string(count - 1));
  }
  return std::make_shared<StreamCopies>(device);
}

}  // namespace taas
