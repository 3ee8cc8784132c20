#include "training/replicas/replica_threads.hpp"

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <string>
#include <utility>

#include "taas/error.hpp"
#include "training/backend/c10_error.hpp"

namespace taas {
namespace {

c10::Stream current_stream_of(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

}  // namespace

ReplicaThreads::ReplicaThreads(std::vector<c10::Device> devices) : devices_(std::move(devices)) {
  tasks_.resize(devices_.size());
  for (std::size_t i = 1; i < devices_.size(); ++i) threads_.emplace_back([this, i] { work(i); });
}

ReplicaThreads::~ReplicaThreads() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void ReplicaThreads::work(std::size_t index) {
  at::init_num_threads();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || tasks_[index]; });
    if (!tasks_[index]) return;
    auto task = std::exchange(tasks_[index], nullptr);
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
    --running_;
    changed_.notify_all();
  }
}

void ReplicaThreads::run(std::size_t count, const Call& call) {
  const at::ThreadLocalState modes;
  std::vector<std::exception_ptr> failures(count);
  const auto guarded = [&](std::size_t i, c10::Stream stream) {
    try {
      const at::ThreadLocalStateGuard with_modes(modes);
      const c10::StreamGuard on_stream(stream);
      call(i);
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  {
    const std::lock_guard lock(mutex_);
    running_ = count - 1;
    for (std::size_t i = 1; i < count; ++i) {
      tasks_[i] = [&guarded, i, stream = current_stream_of(devices_[i])] { guarded(i, stream); };
    }
  }
  changed_.notify_all();
  guarded(0, current_stream_of(devices_.front()));
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return running_ == 0; });
  }
  rethrow(failures);
}

void ReplicaThreads::rethrow(const std::vector<std::exception_ptr>& failures) const {
  for (std::size_t i = 0; i < failures.size(); ++i) {
    if (!failures[i]) continue;
    const auto where = "replica " + std::to_string(i) + " on " + devices_[i].str() + ": ";
    try {
      std::rethrow_exception(failures[i]);
    } catch (const std::exception& error) {
      throw Exception(where + one_line(error));
    } catch (...) {
      throw Exception(where + "its forward has thrown something that is not a std::exception");
    }
  }
}

}  // namespace taas
