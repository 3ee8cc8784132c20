#include "training/group/named_work.hpp"

#include <ATen/core/ivalue_inl.h>

#include "taas/error.hpp"
#include "training/backend/c10_error.hpp"
#include "training/group/tensor_checks.hpp"

namespace taas {

std::string Operation::text() const {
  auto text = "rank " + std::to_string(rank) + ", " + name;
  if (type == c10::ScalarType::Undefined) return text;
  return text + " of " + describe_shape(sizes) + ' ' + c10::toString(type);
}

std::exception_ptr Operation::named(const std::exception_ptr& error) const {
  if (!error) return nullptr;
  try {
    std::rethrow_exception(error);
  } catch (const Exception&) {
    return error;
  } catch (const std::exception& other) {
    const auto culprit = watch ? watch->culprit() : std::string();
    backend->abort();
    const auto why = culprit.empty() ? one_line(other) : culprit + " (" + one_line(other) + ")";
    return std::make_exception_ptr(CommunicationError(text() + ": " + why));
  } catch (...) {
    return error;
  }
}

std::exception_ptr NamedWork::exception() const { return operation_.named(inner_->exception()); }

bool NamedWork::wait(std::chrono::milliseconds timeout) {
  try {
    return inner_->wait(timeout);
  } catch (const std::exception& error) {
    // With a limit of the caller's own nothing is lost yet: the operation goes on.
    if (timeout != kNoTimeout) throw CommunicationError(operation_.text() + ": " + one_line(error));
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
