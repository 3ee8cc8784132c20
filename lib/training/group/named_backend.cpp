#include "training/group/named_backend.hpp"

#include <ATen/core/ivalue_inl.h>

#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

#include "taas/error.hpp"
#include "training/backend/backends.hpp"
#include "training/backend/c10_error.hpp"
#include "training/group/peer_watch.hpp"
#include "training/group/tensor_checks.hpp"
#include "training/sums/shared_sums.hpp"

namespace taas {
namespace {

using c10::intrusive_ptr;
using c10::ivalue::Future;
using Tensors = std::vector<at::Tensor>;
using Lists = std::vector<Tensors>;
using TorchWork = intrusive_ptr<c10d::Work>;

/// Which rank does what with which tensor.
struct Operation {
  int rank = 0;
  const char* name = "";
  c10::DimVector sizes{};
  c10::ScalarType type = c10::ScalarType::Undefined;  ///< undefined: there is no tensor

  /// "rank 1, all_reduce of (4) Float".
  [[nodiscard]] std::string text() const {
    auto text = "rank " + std::to_string(rank) + ", " + name;
    if (type == c10::ScalarType::Undefined) return text;
    return text + " of " + describe_shape(sizes) + ' ' + c10::toString(type);
  }
};

std::mutex begun_mutex;
Operation begun;  // under begun_mutex; no name: none

/// Its text is made at the end of a process that gloo ends, and not for each collective.
void note_begun(const Operation& operation) {
  const std::lock_guard lock(begun_mutex);
  begun = operation;
}

std::string text_of_begun() {
  const std::unique_lock lock(begun_mutex, std::try_to_lock);
  return lock && *begun.name ? begun.text() : "";
}

/// A backend as works know it that may outlive it. They do not own it: the last of them may end in a thread of the
/// backend, which cannot wait there for its own threads.
class KnownBackend {
 public:
  KnownBackend(c10d::Backend& backend, std::shared_ptr<PeerWatch> watch)
      : backend_(&backend), watch_(std::move(watch)) {}

  /// The error as a CommunicationError; one of ours stays. The first failure closes this rank's connections, so that
  /// no rank waits for one that has given up.
  [[nodiscard]] std::exception_ptr named(const Operation& operation, const std::exception_ptr& error) {
    if (!error) return nullptr;
    try {
      std::rethrow_exception(error);
    } catch (const Exception&) {
      return error;
    } catch (const std::exception& other) {
      const auto culprit = watch_ ? watch_->culprit() : std::string();
      abort();
      const auto why = culprit.empty() ? one_line(other) : culprit + " (" + one_line(other) + ")";
      return std::make_exception_ptr(CommunicationError(operation.text() + ": " + why));
    } catch (...) {
      return error;
    }
  }

  /// They will be left when the backend is aborted or shut down.
  void add(const std::shared_ptr<SharedSums>& sums) {
    const std::lock_guard lock(sums_mutex_);
    sums_.push_back(sums);
  }
  /// Maybe more than once, in any thread.
  void leave_sums() {
    const std::lock_guard lock(sums_mutex_);
    for (const auto& sums : sums_) {
      if (const auto here = sums.lock()) here->leave();
    }
  }
  /// Before the backend ends.
  void forget() {
    const std::lock_guard lock(mutex_);
    backend_ = nullptr;
  }

 private:
  void abort() {
    leave_sums();
    const std::lock_guard lock(mutex_);
    if (backend_) backend_->abort();
  }

  std::mutex mutex_;
  c10d::Backend* backend_;
  std::shared_ptr<PeerWatch> watch_;
  std::mutex sums_mutex_;
  std::vector<std::weak_ptr<SharedSums>> sums_;
};

/// A work of torch's whose errors are named.
class NamedWork : public c10d::Work {
 public:
  NamedWork(TorchWork inner, Operation operation, std::shared_ptr<KnownBackend> backend)
      : inner_(std::move(inner)), operation_(std::move(operation)), backend_(std::move(backend)) {}

  bool isCompleted() override { return inner_->isCompleted(); }
  bool isSuccess() const override { return inner_->isSuccess(); }
  std::exception_ptr exception() const override { return backend_->named(operation_, inner_->exception()); }
  Tensors result() override { return inner_->result(); }
  void synchronize() override { inner_->synchronize(); }
  void abort() override { inner_->abort(); }
  uint64_t getSequencenumber() const override { return inner_->getSequencenumber(); }

  bool wait(std::chrono::milliseconds timeout) override {
    try {
      return inner_->wait(timeout);
    } catch (const std::exception& error) {
      // With a limit of the caller's own nothing is lost yet: the operation goes on.
      if (timeout != kNoTimeout) throw CommunicationError(operation_.text() + ": " + one_line(error));
      std::rethrow_exception(backend_->named(operation_, std::current_exception()));
    }
  }

  intrusive_ptr<Future> getFuture() override {
    auto inner = inner_->getFuture();
    auto named = c10::make_intrusive<Future>(inner->elementType(), inner->devices());
    inner->addCallback([named, operation = operation_, backend = backend_](Future& done) {
      if (done.hasError()) {
        named->setError(backend->named(operation, done.exception_ptr()));
      } else {
        named->markCompleted(done.value(), done.storages());
      }
    });
    return named;
  }

 private:
  TorchWork inner_;
  Operation operation_;
  std::shared_ptr<KnownBackend> backend_;
};

const at::Tensor* first(const Tensors& tensors) { return tensors.empty() ? nullptr : &tensors.front(); }

/// What libtaas and c10d's reducer call; the rest says in Backend's words that it is not supported. The newer names of
/// calls (all_gather_single, …) forward to those that are here.
class NamedBackend : public c10d::Backend {
 public:
  NamedBackend(intrusive_ptr<c10d::Backend> inner, std::shared_ptr<PeerWatch> watch)
      : Backend(inner->getRank(), inner->getSize()),
        inner_(std::move(inner)),
        known_(std::make_shared<KnownBackend>(*inner_, std::move(watch))) {}
  /// As `other`, but for sums that are small.
  NamedBackend(intrusive_ptr<NamedBackend> other, std::shared_ptr<SharedSums> sums)
      : Backend(other->getRank(), other->getSize()),
        inner_(other->inner_),
        known_(other->known_),
        sums_(std::move(sums)),
        other_(std::move(other)) {
    known_->add(sums_);
  }
  ~NamedBackend() override {
    if (!other_) known_->forget();
  }
  NamedBackend(const NamedBackend&) = delete;
  NamedBackend& operator=(const NamedBackend&) = delete;

  const std::string getBackendName() const override { return inner_->getBackendName(); }
  intrusive_ptr<Options> getBackendOptions() override { return inner_->getBackendOptions(); }
  void setTimeout(std::chrono::milliseconds timeout) override { inner_->setTimeout(timeout); }
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return inner_->getSequenceNumberForGroup(); }
  void abort() override {
    known_->leave_sums();
    inner_->abort();
  }
  void shutdown() override {
    known_->leave_sums();
    inner_->shutdown();
  }

  TorchWork broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return start("broadcast", first(tensors), &Backend::broadcast, tensors, options);
  }
  TorchWork allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    if (sums_ && options.reduceOp == c10d::ReduceOp::SUM && tensors.size() == 1 && sums_->take(tensors.front())) {
      return sum_at_once(tensors);
    }
    return start("all_reduce", first(tensors), &Backend::allreduce, tensors, options);
  }
  TorchWork allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return start("all_reduce of a sparse tensor", first(tensors), &Backend::allreduce_sparse, tensors, options);
  }
  TorchWork _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override {
    return start("all_gather", &input, &Backend::_allgather_base, output, input, options);
  }
  TorchWork gather(Lists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override {
    return start("gather", first(inputs), &Backend::gather, outputs, inputs, options);
  }
  TorchWork scatter(Tensors& outputs, Lists& inputs, const c10d::ScatterOptions& options) override {
    return start("scatter", first(outputs), &Backend::scatter, outputs, inputs, options);
  }
  TorchWork _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                 const c10d::ReduceScatterOptions& options) override {
    return start("reduce_scatter", &input, &Backend::_reduce_scatter_base, output, input, options);
  }
  TorchWork send(Tensors& tensors, int destination, int tag) override {
    return start("send", first(tensors), &Backend::send, tensors, destination, tag);
  }
  TorchWork recv(Tensors& tensors, int source, int tag) override {
    return start("recv", first(tensors), &Backend::recv, tensors, source, tag);
  }
  TorchWork barrier(const c10d::BarrierOptions& options) override {
    return start("barrier", nullptr, &Backend::barrier, options);
  }

 private:
  /// `tensor` may be null.
  Operation operation_of(const char* name, const at::Tensor* tensor) const {
    Operation operation{.rank = getRank(), .name = name};
    if (tensor && tensor->layout() == c10::kStrided) {
      operation.sizes = tensor->sizes();
      operation.type = tensor->scalar_type();
    }
    return operation;
  }

  template <class Call, class... Arguments>
  TorchWork start(const char* name, const at::Tensor* tensor, Call call, Arguments&... arguments) {
    const auto operation = operation_of(name, tensor);
    note_begun(operation);
    try {
      return c10::make_intrusive<NamedWork>(std::invoke(call, *inner_, arguments...), operation, known_);
    } catch (...) {
      std::rethrow_exception(known_->named(operation, std::current_exception()));
    }
  }

  TorchWork sum_at_once(Tensors& tensors) {
    try {
      sums_->sum(tensors.front());
    } catch (const std::exception&) {
      std::rethrow_exception(known_->named(operation_of("all_reduce", first(tensors)), std::current_exception()));
    }
    auto done = c10::make_intrusive<Future>(c10::ListType::create(c10::TensorType::get()));
    done->markCompleted(c10::IValue(tensors));
    return c10d::Work::create_from_future(done);
  }

  intrusive_ptr<c10d::Backend> inner_;
  std::shared_ptr<KnownBackend> known_;
  std::shared_ptr<SharedSums> sums_;   ///< null: all of it goes to `inner_`
  intrusive_ptr<NamedBackend> other_;  ///< lives as long as this one, and forgets; null: this one does
};

}  // namespace

intrusive_ptr<c10d::Backend> with_named_errors(intrusive_ptr<c10d::Backend> backend, std::shared_ptr<PeerWatch> watch) {
  explain_end_by_gloo(text_of_begun);
  return c10::make_intrusive<NamedBackend>(std::move(backend), std::move(watch));
}

intrusive_ptr<c10d::Backend> with_shared_sums(const intrusive_ptr<c10d::Backend>& named,
                                              std::shared_ptr<SharedSums> sums) {
  return c10::make_intrusive<NamedBackend>(c10::dynamic_intrusive_pointer_cast<NamedBackend>(named), std::move(sums));
}

}  // namespace taas
