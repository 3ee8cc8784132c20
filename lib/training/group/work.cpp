#include "training/group/work.hpp"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <string>
#include <thread>

namespace taas {

namespace {

constexpr std::chrono::microseconds kBetweenLooks{200};

c10::Stream current_stream() {
  const c10::impl::VirtualGuardImpl cuda(c10::DeviceType::CUDA);
  return cuda.getStream(cuda.getDevice());
}

}  // namespace

void Work::Impl::wait() {
  communicating(name_, [&] {
    for (const auto& work : works_) work->wait();
  });
  if (failure_) std::rethrow_exception(failure_);
  if (finish_) finish();
  if (finished_) finished_->block(current_stream());
}

void Work::Impl::wait(std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (const auto& work : works_) {
    while (!work->isCompleted()) {
      if (std::chrono::steady_clock::now() >= end) {
        throw CommunicationError(std::string(name_) + ": not through after " + std::to_string(timeout.count()) + " ms");
      }
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }
  wait();
}

void Work::Impl::finish() {
  try {
    std::exchange(finish_, nullptr)();
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
  const bool on_gpu = at::hasCUDA() && c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA);
  if (!on_gpu) return;
  finished_.emplace(c10::DeviceType::CUDA);
  finished_->record(current_stream());
}

Work::Work(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
void Work::wait() { impl_->wait(); }
void Work::wait(std::chrono::milliseconds timeout) { impl_->wait(timeout); }

}  // namespace taas
