#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

#include "training/group/peer_watch.hpp"

namespace taas {

/// A backend as works know it that may outlive it. They do not own it: the last of them may end in a thread of the
/// backend, which cannot wait there for its own threads.
class KnownBackend {
 public:
  explicit KnownBackend(c10d::Backend& backend) : backend_(&backend) {}
  void abort() {
    tell_end();
    const std::lock_guard lock(mutex_);
    if (backend_) backend_->abort();
  }
  /// Will be called when the backend is aborted or shut down, maybe more than once, in any thread.
  void at_end(std::function<void()> listener) {
    const std::lock_guard lock(listeners_mutex_);
    listeners_.push_back(std::move(listener));
  }
  void tell_end() {
    const std::lock_guard lock(listeners_mutex_);
    for (const auto& listener : listeners_) listener();
  }
  /// Before the backend ends.
  void forget() {
    const std::lock_guard lock(mutex_);
    backend_ = nullptr;
  }

 private:
  std::mutex mutex_;
  c10d::Backend* backend_;
  std::mutex listeners_mutex_;
  std::vector<std::function<void()>> listeners_;
};

/// Which rank does what with which tensor, and who knows why it fails.
struct Operation {
  int rank = 0;
  const char* name = "";
  c10::DimVector sizes{};
  c10::ScalarType type = c10::ScalarType::Undefined;  ///< undefined: there is no tensor
  std::shared_ptr<KnownBackend> backend;
  std::shared_ptr<PeerWatch> watch;

  /// "rank 1, all_reduce of (4) Float".
  [[nodiscard]] std::string text() const;
  /// The error as a CommunicationError; one of ours stays. The first failure closes this rank's connections, so that
  /// no rank waits for one that has given up.
  [[nodiscard]] std::exception_ptr named(const std::exception_ptr& error) const;
};

/// A work of torch's whose errors are named.
class NamedWork : public c10d::Work {
 public:
  NamedWork(c10::intrusive_ptr<c10d::Work> inner, Operation operation)
      : inner_(std::move(inner)), operation_(std::move(operation)) {}

  bool isCompleted() override { return inner_->isCompleted(); }
  bool isSuccess() const override { return inner_->isSuccess(); }
  std::exception_ptr exception() const override;
  int sourceRank() const override { return inner_->sourceRank(); }
  std::vector<at::Tensor> result() override { return inner_->result(); }
  void synchronize() override { inner_->synchronize(); }
  bool wait(std::chrono::milliseconds timeout) override;
  void abort() override { inner_->abort(); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override { return inner_->getSequencenumber(); }

 private:
  c10::intrusive_ptr<c10d::Work> inner_;
  Operation operation_;
};

}  // namespace taas
