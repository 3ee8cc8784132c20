#include "training/group/named_work.hpp"

#include <ATen/core/ivalue_inl.h>

#include "taas/error.hpp"
#include "training/backend/c10_error.hpp"

namespace taas {

std::exception_ptr Operation::named(const std::exception_ptr& error) const {
  if (!error) return nullptr;
  try {
    std::rethrow_exception(error);
  } catch (const Exception&) {
    return error;
  } catch (const std::exception& other) {
    const auto culprit = watch ? watch->culprit() : std::string();
    return std::make_exception_ptr(
        CommunicationError("rank " + std::to_string(rank) + ", " + name + ": " +
                           (culprit.empty() ? one_line(other) : culprit + " (" + one_line(other) + ")")));
  } catch (...) {
    return error;
  }
}

std::exception_ptr NamedWork::exception() const { return operation_.named(inner_->exception()); }

bool NamedWork::wait(std::chrono::milliseconds timeout) {
  try {
    return inner_->wait(timeout);
  } catch (...) {
    std::rethrow_exception(operation_.named(std::current_exception()));
  }
}

c10::intrusive_ptr<c10::ivalue::Future> NamedWork::getFuture() {
  auto inner = inner_->getFuture();
  auto named = c10::make_intrusive<c10::ivalue::Future>(inner->elementType(), inner->devices());
  inner->addCallback([named, operation = operation_](c10::ivalue::Future& done) {
    if (done.hasError()) {
      named->setError(operation.named(done.exception_ptr()));
    } else {
      named->markCompleted(done.value(), done.storages());
    }
  });
  return named;
}

}  // namespace taas
