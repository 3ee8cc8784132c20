#include "taas/collectives.hpp"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>
#include <vector>

#include "taas/error.hpp"
#include "training/backend/c10_error.hpp"
#include "training/group/tensor_checks.hpp"

namespace taas {
namespace {

constexpr std::chrono::microseconds kBetweenQuestions{200};

using TensorVector = std::vector<at::Tensor>;

c10::Stream current_stream() {
  const c10::impl::VirtualGuardImpl cuda(c10::DeviceType::CUDA);
  return cuda.getStream(cuda.getDevice());
}

}  // namespace

/// A collective as torch has it, and the sum that is left to divide by the number of ranks when it is through. Without
/// a work, as in a group of one process, everything is done before it has begun.
class Work::Impl {
 public:
  Impl(const char* name, c10::intrusive_ptr<c10d::Work> work, at::Tensor sum, int ranks)
      : name_(name), work_(std::move(work)), sum_(std::move(sum)), ranks_(ranks) {}

  /// Each call orders the stream that is current then. The first one divides, and later ones come after that.
  void wait() {
    if (!work_) return;
    communicating(name_, [&] { work_->wait(); });
    if (sum_.defined()) divide();
    if (divided_) divided_->block(current_stream());
  }

  void wait(std::chrono::milliseconds timeout) {
    const auto end = std::chrono::steady_clock::now() + timeout;
    while (work_ && !work_->isCompleted()) {
      if (std::chrono::steady_clock::now() >= end) {
        throw CommunicationError(std::string(name_) + ": not through after " + std::to_string(timeout.count()) + " ms");
      }
      std::this_thread::sleep_for(kBetweenQuestions);
    }
    wait();
  }

 private:
  void divide() {
    sum_.div_(ranks_);
    if (sum_.is_cuda()) {
      divided_.emplace(c10::DeviceType::CUDA);
      divided_->record(current_stream());
    }
    sum_.reset();
  }

  const char* name_;
  c10::intrusive_ptr<c10d::Work> work_;
  at::Tensor sum_;
  int ranks_;
  std::optional<c10::Event> divided_;  // on the stream of the first wait
};

Work::Work(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
void Work::wait() { impl_->wait(); }
void Work::wait(std::chrono::milliseconds timeout) { impl_->wait(timeout); }

namespace {

/// `sum` is divided at the end where it is defined.
template <class Call>
Work start(const ProcessGroup& group, const char* name, Call&& call, at::Tensor sum = {}) {
  c10::intrusive_ptr<c10d::Work> work;
  if (group.native()) work = communicating(name, call);
  return Work(std::make_shared<Work::Impl>(name, std::move(work), std::move(sum), group.world_size()));
}

// Refusals: each throws InvalidArgument "<call>: …" naming what it got.

constexpr c10::ScalarType kReduced[] = {at::kByte, at::kChar,     at::kBool,  at::kInt,   at::kLong,
                                        at::kHalf, at::kBFloat16, at::kFloat, at::kDouble};

[[noreturn]] void refuse(const char* call, const std::string& what) {
  throw InvalidArgument(std::string(call) + ": " + what);
}

/// Defined, dense, contiguous, and on the CPU or the group's device.
void check_tensor(const ProcessGroup& group, const char* call, const at::Tensor& tensor) {
  if (!tensor.defined()) refuse(call, "a tensor is undefined");
  if (tensor.layout() != c10::kStrided) refuse(call, "a tensor is sparse; only dense ones can be communicated");
  if (!tensor.is_contiguous()) refuse(call, "the tensor " + describe(tensor) + " is not contiguous");
  if (!tensor.is_cpu() && tensor.device() != group.device()) {
    refuse(call, "the tensor " + describe(tensor) + " is on " + tensor.device().str() + ", but this group works on " +
                     group.device().str());
  }
}

/// `all` has shape (world_size, *one.shape) and the dtype and device of `one`; both pass check_tensor.
void check_rows(const ProcessGroup& group, const char* call, const char* all_name, const at::Tensor& all,
                const char* one_name, const at::Tensor& one) {
  check_tensor(group, call, all);
  check_tensor(group, call, one);
  std::vector<std::int64_t> wanted{group.world_size()};
  wanted.insert(wanted.end(), one.sizes().begin(), one.sizes().end());
  if (all.sizes() != c10::IntArrayRef(wanted) || all.scalar_type() != one.scalar_type()) {
    refuse(call, std::string(all_name) + " is " + describe(all) + " but must be " + describe_shape(wanted) + " " +
                     c10::toString(one.scalar_type()) + ", a row of " + one_name + "'s shape for each rank");
  }
  if (all.device() != one.device()) {
    refuse(call,
           std::string(all_name) + " is on " + all.device().str() + ", " + one_name + " on " + one.device().str());
  }
}

/// In the group, and not this rank itself.
void check_other_rank(const ProcessGroup& group, const char* call, const char* name, int rank) {
  check_rank(group, call, name, rank);
  if (rank == group.rank()) refuse(call, std::string(name) + " " + std::to_string(rank) + " is this rank itself");
}

/// For a tensor that is written to: not a view that is conjugated or negated as it is read.
void check_output(const ProcessGroup& group, const char* call, const at::Tensor& tensor) {
  check_tensor(group, call, tensor);
  if (!tensor.is_conj() && !tensor.is_neg()) return;
  refuse(call, "the tensor " + describe(tensor) + " is a " + (tensor.is_conj() ? "conjugated" : "negated") +
                   " view, which cannot be written to: give the tensor that it is a view of, or a copy (clone())");
}

/// The type is one that backends reduce in this way, and an average needs one that can hold it.
void check_operation(const char* call, const at::Tensor& tensor, ReduceOp op) {
  const auto type = tensor.scalar_type();
  const bool orders = op == ReduceOp::kMin || op == ReduceOp::kMax;
  if (op == ReduceOp::kAverage && !tensor.is_floating_point() && !tensor.is_complex()) {
    refuse(call, std::string("kAverage needs a floating point tensor, not ") + c10::toString(type));
  }
  if (tensor.is_complex() && op != ReduceOp::kSum && op != ReduceOp::kAverage) {
    refuse(call, std::string("complex numbers are reduced by kSum and kAverage alone, and the tensor is ") +
                     c10::toString(type));
  }
  if (type == at::kBool && !orders) refuse(call, "Bool is reduced by kMin (all) and kMax (any) alone");
  if (std::ranges::find(kReduced, c10::toRealValueType(type)) == std::end(kReduced)) {
    refuse(call, std::string("no backend reduces ") + c10::toString(type) +
                     ": convert it, for example to Int, Long, Half or Float");
  }
}

// The forms in which tensors are communicated: backends know few types, and what is only moved needs none.

/// Without a gradient, and with a conjugation or negation that was only noted carried out (a copy, then).
at::Tensor resolved(const at::Tensor& input) { return input.detach().resolve_conj().resolve_neg(); }

/// The memory of a contiguous tensor as bytes, in one dimension.
at::Tensor as_bytes(const at::Tensor& tensor) { return tensor.detach().reshape(-1).view(at::kByte); }

/// The memory of a contiguous tensor in a type that backends reduce: pairs for complex numbers.
at::Tensor reducible(const at::Tensor& tensor) {
  auto plain = tensor.detach();
  return plain.is_complex() ? at::view_as_real(plain) : plain;
}

c10d::ReduceOp native(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMin:
      return c10d::ReduceOp::MIN;
    case ReduceOp::kMax:
      return c10d::ReduceOp::MAX;
    case ReduceOp::kProduct:
      return c10d::ReduceOp::PRODUCT;
    case ReduceOp::kSum:
    case ReduceOp::kAverage:  // gloo has no average: a sum, divided afterwards, under each backend
      break;
  }
  return c10d::ReduceOp::SUM;
}

/// Whether an average is divided before it is summed: the sum of 16 bit numbers is soon too large for them.
bool divides_first(const at::Tensor& tensor, ReduceOp op) {
  const auto type = c10::toRealValueType(tensor.scalar_type());
  return op == ReduceOp::kAverage && (type == at::kHalf || type == at::kBFloat16);
}

/// The tensor, where it is to be divided when it is summed.
at::Tensor divided_last(const at::Tensor& tensor, ReduceOp op) {
  return op == ReduceOp::kAverage && !divides_first(tensor, op) ? tensor : at::Tensor();
}

// Rows lie one after the other, so these two see flat tensors. Their names changed between torch 2.11 and 2.15.
template <class Group>
auto gather_rows(Group& group, at::Tensor& output, at::Tensor& input) {
  if constexpr (requires { group.all_gather_single(output, input); }) {
    return group.all_gather_single(output, input);
  } else {
    return group._allgather_base(output, input);
  }
}
template <class Group>
auto scatter_rows(Group& group, at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) {
  if constexpr (requires { group.reduce_scatter_single(output, input, options); }) {
    return group.reduce_scatter_single(output, input, options);
  } else {
    return group._reduce_scatter_base(output, input, options);
  }
}

std::vector<TensorVector> rows_on_root(const ProcessGroup& group, const at::Tensor& all, int root) {
  if (group.rank() != root) return {};
  TensorVector rows;
  for (const auto& row : all.detach().unbind(0)) rows.push_back(as_bytes(row));
  return {std::move(rows)};
}

}  // namespace

Work all_reduce_async(const ProcessGroup& group, at::Tensor& tensor, ReduceOp op) {
  check_output(group, "all_reduce", tensor);
  check_operation("all_reduce", tensor, op);
  c10d::AllreduceOptions options;
  options.reduceOp = native(op);
  TensorVector tensors{reducible(tensor)};
  auto& mine = tensors.front();
  if (group.native() && divides_first(mine, op)) mine.div_(group.world_size());
  return start(
      group, "all_reduce", [&] { return group.native()->allreduce(tensors, options); }, divided_last(mine, op));
}

Work broadcast_async(const ProcessGroup& group, at::Tensor& tensor, int root) {
  check_output(group, "broadcast", tensor);
  check_rank(group, "broadcast", "root", root);
  c10d::BroadcastOptions options;
  options.rootRank = root;
  TensorVector tensors{as_bytes(tensor)};
  return start(group, "broadcast", [&] { return group.native()->broadcast(tensors, options); });
}

Work all_gather_async(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input) {
  check_rows(group, "all_gather", "output", output, "input", input);
  check_output(group, "all_gather", output);
  auto all = as_bytes(output);
  auto one = as_bytes(resolved(input));
  if (!group.native()) all.copy_(one);
  return start(group, "all_gather", [&] { return gather_rows(*group.native(), all, one); });
}

Work reduce_scatter_async(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input, ReduceOp op) {
  check_rows(group, "reduce_scatter", "input", input, "output", output);
  check_output(group, "reduce_scatter", output);
  check_operation("reduce_scatter", input, op);
  auto one = reducible(output).view(-1);
  auto all = reducible(resolved(input)).view(-1);
  if (!group.native()) one.copy_(all);
  if (divides_first(all, op)) all = all.div(group.world_size());
  c10d::ReduceScatterOptions options;
  options.reduceOp = native(op);
  return start(
      group, "reduce_scatter", [&] { return scatter_rows(*group.native(), one, all, options); }, divided_last(one, op));
}

Work gather_async(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input, int root) {
  check_rank(group, "gather", "root", root);
  check_tensor(group, "gather", input);
  if (group.rank() == root) {
    check_rows(group, "gather", "output", output, "input", input);
    check_output(group, "gather", output);
  }
  auto rows = rows_on_root(group, output, root);
  TensorVector inputs{as_bytes(resolved(input))};
  if (!group.native()) rows[0][0].copy_(inputs[0]);
  c10d::GatherOptions options;
  options.rootRank = root;
  return start(group, "gather", [&] { return group.native()->gather(rows, inputs, options); });
}

Work scatter_async(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input, int root) {
  check_rank(group, "scatter", "root", root);
  check_output(group, "scatter", output);
  if (group.rank() == root) check_rows(group, "scatter", "input", input, "output", output);
  auto rows = rows_on_root(group, group.rank() == root ? resolved(input) : input, root);
  TensorVector outputs{as_bytes(output)};
  if (!group.native()) outputs[0].copy_(rows[0][0]);
  c10d::ScatterOptions options;
  options.rootRank = root;
  return start(group, "scatter", [&] { return group.native()->scatter(outputs, rows, options); });
}

Work send_async(const ProcessGroup& group, const at::Tensor& tensor, int destination, int tag) {
  check_tensor(group, "send", tensor);
  check_other_rank(group, "send", "destination", destination);
  TensorVector tensors{as_bytes(resolved(tensor))};
  return start(group, "send", [&] { return group.native()->send(tensors, destination, tag); });
}

Work recv_async(const ProcessGroup& group, at::Tensor& tensor, int source, int tag) {
  check_output(group, "recv", tensor);
  check_other_rank(group, "recv", "source", source);
  TensorVector tensors{as_bytes(tensor)};
  return start(group, "recv", [&] { return group.native()->recv(tensors, source, tag); });
}

void all_reduce(const ProcessGroup& group, at::Tensor& tensor, ReduceOp op) {
  all_reduce_async(group, tensor, op).wait();
}
void broadcast(const ProcessGroup& group, at::Tensor& tensor, int root) { broadcast_async(group, tensor, root).wait(); }
void all_gather(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input) {
  all_gather_async(group, output, input).wait();
}
void reduce_scatter(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input, ReduceOp op) {
  reduce_scatter_async(group, output, input, op).wait();
}
void gather(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input, int root) {
  gather_async(group, output, input, root).wait();
}
void scatter(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input, int root) {
  scatter_async(group, output, input, root).wait();
}
void send(const ProcessGroup& group, const at::Tensor& tensor, int destination, int tag) {
  send_async(group, tensor, destination, tag).wait();
}
void recv(const ProcessGroup& group, at::Tensor& tensor, int source, int tag) {
  recv_async(group, tensor, source, tag).wait();
}
void barrier(const ProcessGroup& group) {
  c10d::BarrierOptions options;
  options.device = group.device();
  if (group.device().is_cuda()) options.device_ids = {group.device().index()};
  start(group, "barrier", [&] { return group.native()->barrier(options); }).wait();
}

}  // namespace taas
