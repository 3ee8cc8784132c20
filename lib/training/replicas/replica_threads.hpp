#pragma once

#include <c10/core/Device.h>

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace taas {

/// A thread for each device but the first, whose work is done by the caller. They live as long as this object:
/// libraries keep pools of threads and handles for each thread that computes.
class ReplicaThreads {
 public:
  using Call = std::function<void(std::size_t)>;

  explicit ReplicaThreads(std::vector<c10::Device> devices);
  ~ReplicaThreads();
  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

  /// call(i) for i < count, each with the caller's modes of torch, on the caller's stream of device i. Returns when all
  /// have ended. Throws Exception, with the device, for the first one that has thrown.
  void run(std::size_t count, const Call& call);

 private:
  using Task = std::function<void()>;

  void work(std::size_t index);
  void rethrow(const std::vector<std::exception_ptr>& failures) const;

  std::vector<c10::Device> devices_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Task> tasks_;  // of each thread; empty when there is nothing to do
  std::size_t running_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace taas
