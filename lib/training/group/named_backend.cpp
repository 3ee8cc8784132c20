#include "training/group/named_backend.hpp"

#include <ATen/core/ivalue_inl.h>

#include <mutex>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>
#include <vector>

#include "training/backend/gloo_failure.hpp"
#include "training/group/named_work.hpp"

namespace taas {
namespace {

using c10::intrusive_ptr;
using Tensors = std::vector<at::Tensor>;
using Lists = std::vector<Tensors>;
using TorchWork = intrusive_ptr<c10d::Work>;

const at::Tensor* first(const Tensors& tensors) { return tensors.empty() ? nullptr : &tensors.front(); }

std::mutex begun_mutex;
Operation begun;  // under begun_mutex; no name: none

/// Its text is made at the end of a process that gloo ends, and not for each collective.
void note_begun(const Operation& operation) {
  const std::lock_guard lock(begun_mutex);
  begun.rank = operation.rank;
  begun.name = operation.name;
  begun.sizes = operation.sizes;
  begun.type = operation.type;
}

std::string begun_last() {
  const std::unique_lock lock(begun_mutex, std::try_to_lock);
  return lock && *begun.name ? begun.text() : "";
}

/// Only what gloo can do; the rest says in Backend's words that it is not supported. The newer names of calls
/// (all_gather_single, …) forward to those that are here.
class NamedBackend : public c10d::Backend {
 public:
  NamedBackend(intrusive_ptr<c10d::Backend> inner, std::shared_ptr<PeerWatch> watch)
      : Backend(inner->getRank(), inner->getSize()),
        inner_(std::move(inner)),
        known_(std::make_shared<KnownBackend>(*inner_)),
        watch_(std::move(watch)) {}
  /// As `other`, but for sums that are small.
  NamedBackend(intrusive_ptr<NamedBackend> other, std::shared_ptr<SharedSums> sums)
      : Backend(other->getRank(), other->getSize()),
        inner_(other->inner_),
        known_(other->known_),
        watch_(other->watch_),
        sums_(std::move(sums)),
        other_(std::move(other)) {
    known_->at_end([sums = std::weak_ptr(sums_)] {
      if (const auto here = sums.lock()) here->leave();
    });
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
    known_->tell_end();
    inner_->abort();
  }
  void shutdown() override {
    known_->tell_end();
    inner_->shutdown();
  }

  TorchWork broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return start("broadcast", first(tensors), [&] { return inner_->broadcast(tensors, options); });
  }
  TorchWork allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    if (sums_ && options.reduceOp == c10d::ReduceOp::SUM && tensors.size() == 1 && sums_->take(tensors.front())) {
      return sum_at_once(tensors);
    }
    return start("all_reduce", first(tensors), [&] { return inner_->allreduce(tensors, options); });
  }
  TorchWork allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return start("all_reduce of a sparse tensor", first(tensors),
                 [&] { return inner_->allreduce_sparse(tensors, options); });
  }
  TorchWork allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override {
    return start("all_reduce", first(tensors), [&] { return inner_->allreduce_coalesced(tensors, options); });
  }
  TorchWork reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    return start("reduce", first(tensors), [&] { return inner_->reduce(tensors, options); });
  }
  TorchWork allgather(Lists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override {
    return start("all_gather", first(inputs), [&] { return inner_->allgather(outputs, inputs, options); });
  }
  TorchWork _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override {
    return start("all_gather", &input, [&] { return inner_->_allgather_base(output, input, options); });
  }
  TorchWork allgather_coalesced(Lists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override {
    return start("all_gather", first(inputs), [&] { return inner_->allgather_coalesced(outputs, inputs, options); });
  }
  TorchWork allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                            const c10d::AllgatherOptions& options) override {
    return start("all_gather", first(inputs),
                 [&] { return inner_->allgather_into_tensor_coalesced(outputs, inputs, options); });
  }
  TorchWork gather(Lists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override {
    return start("gather", first(inputs), [&] { return inner_->gather(outputs, inputs, options); });
  }
  TorchWork scatter(Tensors& outputs, Lists& inputs, const c10d::ScatterOptions& options) override {
    return start("scatter", first(outputs), [&] { return inner_->scatter(outputs, inputs, options); });
  }
  TorchWork reduce_scatter(Tensors& outputs, Lists& inputs, const c10d::ReduceScatterOptions& options) override {
    return start("reduce_scatter", first(outputs), [&] { return inner_->reduce_scatter(outputs, inputs, options); });
  }
  TorchWork _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                 const c10d::ReduceScatterOptions& options) override {
    return start("reduce_scatter", &input, [&] { return inner_->_reduce_scatter_base(output, input, options); });
  }
  TorchWork reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                            const c10d::ReduceScatterOptions& options) override {
    return start("reduce_scatter", first(inputs),
                 [&] { return inner_->reduce_scatter_tensor_coalesced(outputs, inputs, options); });
  }
  TorchWork alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes,
                          std::vector<int64_t>& input_sizes, const c10d::AllToAllOptions& options) override {
    return start("all_to_all", &input,
                 [&] { return inner_->alltoall_base(output, input, output_sizes, input_sizes, options); });
  }
  TorchWork alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override {
    return start("all_to_all", first(inputs), [&] { return inner_->alltoall(outputs, inputs, options); });
  }
  TorchWork send(Tensors& tensors, int destination, int tag) override {
    return start("send", first(tensors), [&] { return inner_->send(tensors, destination, tag); });
  }
  TorchWork recv(Tensors& tensors, int source, int tag) override {
    return start("recv", first(tensors), [&] { return inner_->recv(tensors, source, tag); });
  }
  TorchWork recvAnysource(Tensors& tensors, int tag) override {
    return start("recv", first(tensors), [&] { return inner_->recvAnysource(tensors, tag); });
  }
  TorchWork barrier(const c10d::BarrierOptions& options) override {
    return start("barrier", nullptr, [&] { return inner_->barrier(options); });
  }

 private:
  /// `tensor` may be null.
  Operation operation_of(const char* name, const at::Tensor* tensor) const {
    Operation operation{.rank = getRank(), .name = name, .backend = known_, .watch = watch_};
    if (tensor && tensor->layout() == c10::kStrided) {
      operation.sizes = tensor->sizes();
      operation.type = tensor->scalar_type();
    }
    return operation;
  }

  template <class Call>
  TorchWork start(const char* name, const at::Tensor* tensor, Call&& call) {
    const auto operation = operation_of(name, tensor);
    note_begun(operation);
    try {
      return c10::make_intrusive<NamedWork>(call(), operation);
    } catch (...) {
      std::rethrow_exception(operation.named(std::current_exception()));
    }
  }

  TorchWork sum_at_once(Tensors& tensors) {
    try {
      sums_->sum(tensors.front());
    } catch (const std::exception&) {
      std::rethrow_exception(operation_of("all_reduce", first(tensors)).named(std::current_exception()));
    }
    auto done = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    done->markCompleted(c10::IValue(tensors));
    return c10d::Work::create_from_future(done);
  }

  intrusive_ptr<c10d::Backend> inner_;
  std::shared_ptr<KnownBackend> known_;
  std::shared_ptr<PeerWatch> watch_;
  std::shared_ptr<SharedSums> sums_;   ///< null: all of it goes to `inner_`
  intrusive_ptr<NamedBackend> other_;  ///< lives as long as this one, and forgets; null: this one does
};

}  // namespace

intrusive_ptr<c10d::Backend> with_named_errors(intrusive_ptr<c10d::Backend> backend, std::shared_ptr<PeerWatch> watch) {
  explain_end_by_gloo(begun_last);
  return c10::make_intrusive<NamedBackend>(std::move(backend), std::move(watch));
}

intrusive_ptr<c10d::Backend> with_shared_sums(const intrusive_ptr<c10d::Backend>& named,
                                              std::shared_ptr<SharedSums> sums) {
  return c10::make_intrusive<NamedBackend>(c10::dynamic_intrusive_pointer_cast<NamedBackend>(named), std::move(sums));
}

}  // namespace taas
