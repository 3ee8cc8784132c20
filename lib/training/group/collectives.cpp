#include "taas/collectives.hpp"

#include <ATen/ATen.h>

#include <utility>

#include "training/group/process_group_state.hpp"
#include "training/group/tensor_checks.hpp"
#include "training/group/tensor_forms.hpp"
#include "training/group/work.hpp"

namespace taas {

namespace {

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

/// What is left to do for an average.
Work::Impl::Finish division(const ProcessGroup& group, const at::Tensor& tensor, ReduceOp op) {
  if (op != ReduceOp::kAverage || divides_first(tensor, op)) return nullptr;
  return [tensor, size = group.world_size()]() mutable { tensor.div_(size); };
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
  if (!group.native()) return done("all_reduce");
  c10d::AllreduceOptions options;
  options.reduceOp = native(op);
  TensorVector tensors{reducible(tensor)};
  if (divides_first(tensor, op)) tensors.front().div_(group.world_size());
  return start(
      "all_reduce", [&] { return group.native()->allreduce(tensors, options); }, division(group, tensors.front(), op));
}

Work broadcast_async(const ProcessGroup& group, at::Tensor& tensor, int root) {
  check_output(group, "broadcast", tensor);
  check_rank(group, "broadcast", "root", root);
  if (!group.native()) return done("broadcast");
  c10d::BroadcastOptions options;
  options.rootRank = root;
  TensorVector tensors{as_bytes(tensor)};
  return start("broadcast", [&] { return group.native()->broadcast(tensors, options); });
}

Work all_gather_async(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input) {
  check_rows(group, "all_gather", "output", output, "input", input);
  check_output(group, "all_gather", output);
  auto all = as_bytes(output);
  auto one = as_bytes(resolved(input));
  if (!group.native()) {
    all.copy_(one);
    return done("all_gather");
  }
  return start("all_gather", [&] { return gather_rows(*group.native(), all, one); });
}

Work reduce_scatter_async(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input, ReduceOp op) {
  check_rows(group, "reduce_scatter", "input", input, "output", output);
  check_output(group, "reduce_scatter", output);
  check_operation("reduce_scatter", input, op);
  auto one = reducible(output).view(-1);
  auto all = reducible(resolved(input)).view(-1);
  if (!group.native()) {
    one.copy_(all);
    return done("reduce_scatter");
  }
  if (divides_first(input, op)) all = all.div(group.world_size());
  c10d::ReduceScatterOptions options;
  options.reduceOp = native(op);
  return start(
      "reduce_scatter", [&] { return scatter_rows(*group.native(), one, all, options); }, division(group, one, op));
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
  if (!group.native()) {
    rows[0][0].copy_(inputs[0]);
    return done("gather");
  }
  c10d::GatherOptions options;
  options.rootRank = root;
  return start("gather", [&] { return group.native()->gather(rows, inputs, options); });
}

Work scatter_async(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input, int root) {
  check_rank(group, "scatter", "root", root);
  check_output(group, "scatter", output);
  if (group.rank() == root) check_rows(group, "scatter", "input", input, "output", output);
  auto rows = rows_on_root(group, group.rank() == root ? resolved(input) : input, root);
  TensorVector outputs{as_bytes(output)};
  if (!group.native()) {
    outputs[0].copy_(rows[0][0]);
    return done("scatter");
  }
  c10d::ScatterOptions options;
  options.rootRank = root;
  return start("scatter", [&] { return group.native()->scatter(outputs, rows, options); });
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
void barrier(const ProcessGroup& group) {
  if (!group.native()) return;
  c10d::BarrierOptions options;
  options.device = group.device();
  if (group.device().is_cuda()) options.device_ids = {group.device().index()};
  start("barrier", [&] { return group.native()->barrier(options); }).wait();
}

}  // namespace taas
