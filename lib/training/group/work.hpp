#pragma once

#include <c10/core/Event.h>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "taas/collectives.hpp"
#include "training/backend/c10_error.hpp"
#include "training/group/process_group_state.hpp"

namespace taas {

using TensorVector = std::vector<at::Tensor>;

/// What of a collective is under way, in one or several works of torch's.
class Work::Impl {
 public:
  using Finish = std::function<void()>;
  using Works = std::vector<c10::intrusive_ptr<c10d::Work>>;

  Impl(const char* name, Works works, Finish finish)
      : name_(name), works_(std::move(works)), finish_(std::move(finish)) {}

  /// Each call orders the stream that is current then. What is left to do on this rank is done by the first one, and
  /// later ones come after that.
  void wait();
  void wait(std::chrono::milliseconds timeout);

 private:
  void finish();

  const char* name_;
  Works works_;
  Finish finish_;  // what is left to do on this rank when the collective is through
  std::exception_ptr failure_;
  std::optional<c10::Event> finished_;  // on the stream of the first wait
};

template <class Start>
Work start(const char* name, Start&& call, Work::Impl::Finish finish = nullptr) {
  return Work(std::make_shared<Work::Impl>(name, Work::Impl::Works{communicating(name, call)}, std::move(finish)));
}

/// In a group of one process everything is done before it has begun.
inline Work done(const char* name) { return Work(std::make_shared<Work::Impl>(name, Work::Impl::Works{}, nullptr)); }

}  // namespace taas
