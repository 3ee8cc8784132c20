#include <ATen/ATen.h>

#include <chrono>
#include <vector>

#include "group/scenario_tensors.hpp"
#include "rank_scenarios.hpp"
#include "taas/collectives.hpp"
#include "taas/error.hpp"

namespace taas::test {
namespace {

using std::chrono::milliseconds;

/// (2, 3), each element different, and different on each rank.
at::Tensor numbers(int rank, at::ScalarType type = at::kFloat) {
  return (at::arange(6, here(type)) + 10 * rank + 1).view({2, 3});
}

at::Tensor all_numbers(int ranks, at::ScalarType type = at::kFloat) {
  std::vector<at::Tensor> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(numbers(rank, type));
  return at::stack(all);
}

at::Tensor reduced(const at::Tensor& all, ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return all.sum(0, false, all.scalar_type());
    case ReduceOp::kAverage:
      return all.sum(0) / all.size(0);
    case ReduceOp::kMin:
      return all.amin(0);
    case ReduceOp::kMax:
      return all.amax(0);
    case ReduceOp::kProduct:
      return all.prod(0, false, all.scalar_type());
  }
  return {};
}

constexpr ReduceOp kAllOps[] = {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct};

void reductions() {
  auto group = join_here();
  for (auto type : {at::kFloat, at::kDouble, at::kLong}) {
    auto all = all_numbers(group.world_size(), type);
    for (auto op : kAllOps) {
      if (op == ReduceOp::kAverage && type == at::kLong) continue;
      auto tensor = numbers(group.rank(), type);
      all_reduce(group, tensor, op);
      expect_equal(tensor, reduced(all, op), "all_reduce " + std::to_string(static_cast<int>(op)));
    }
  }
  for (auto op : {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMax}) {
    auto rows = at::arange(6.0 * group.world_size(), here()).view({group.world_size(), 2, 3}) * (group.rank() + 1);
    std::vector<at::Tensor> mine_of_all;
    for (int rank = 0; rank < group.world_size(); ++rank)
      mine_of_all.push_back(rows[group.rank()] / (group.rank() + 1) * (rank + 1));
    auto output = at::empty({2, 3}, here());
    reduce_scatter(group, output, rows, op);
    expect_equal(output, reduced(at::stack(mine_of_all), op), "reduce_scatter");
  }
}

void movements() {
  auto group = join_here();
  const int size = group.world_size();
  for (int root = 0; root < size; ++root) {
    auto tensor = numbers(group.rank());
    broadcast(group, tensor, root);
    expect_equal(tensor, numbers(root), "broadcast");

    auto gathered = group.rank() == root ? at::empty({size, 2, 3}, here()) : at::Tensor();
    gather(group, gathered, numbers(group.rank()), root);
    if (group.rank() == root) expect_equal(gathered, all_numbers(size), "gather");

    auto part = at::empty({2, 3}, here());
    scatter(group, part, group.rank() == root ? all_numbers(size) : at::Tensor(), root);
    expect_equal(part, numbers(group.rank()), "scatter");
  }
  auto rows = at::empty({size, 2, 3}, here());
  all_gather(group, rows, numbers(group.rank()));
  expect_equal(rows, all_numbers(size), "all_gather");
  barrier(group);
}

/// Each rank to the next one, all at once; then two messages told apart by their tag.
void point_to_point() {
  auto group = join_here();
  const int size = group.world_size();
  const int next = (group.rank() + 1) % size;
  const int before = (group.rank() + size - 1) % size;
  auto received = at::empty({2, 3}, here());
  const auto sent = numbers(group.rank());
  auto sending = send_async(group, sent, next);
  recv(group, received, before);
  sending.wait();
  expect_equal(received, numbers(before), "recv");

  if (group.backend() == "nccl") return;  // which has no tags
  const auto first = at::full({1}, 1.0f, here()), second = at::full({1}, 2.0f, here());
  auto send_first = send_async(group, first, next, 1);
  auto send_second = send_async(group, second, next, 2);
  auto one = at::empty({1}, here()), two = at::empty({1}, here());
  recv(group, two, before, 2);
  recv(group, one, before, 1);
  send_first.wait();
  send_second.wait();
  expect_equal(at::cat({one, two}), at::cat({first, second}), "recv with tags");
}

void overlapping() {
  auto group = join_here();
  std::vector<at::Tensor> tensors;
  std::vector<Work> works;
  for (int i = 0; i < 20; ++i) {
    tensors.push_back(at::full({1000}, static_cast<float>(i), here()));
    works.push_back(all_reduce_async(group, tensors.back(), i % 2 ? ReduceOp::kAverage : ReduceOp::kSum));
  }
  for (auto& work : works) work.wait();
  works.front().wait();  // again: nothing happens
  for (int i = 0; i < 20; ++i) {
    const float wanted = static_cast<float>(i * (i % 2 ? 1 : group.world_size()));
    expect_equal(tensors[static_cast<std::size_t>(i)], at::full({1000}, wanted), "all_reduce_async");
  }
  auto leaf = at::ones({3}, here()).requires_grad_();
  all_reduce(group, leaf);
  expect_equal(leaf.detach(), at::full({3}, static_cast<float>(group.world_size())), "all_reduce of a parameter");
}

/// The same refusal on every rank, before anything is sent.
void refusals() {
  auto group = join_here();
  const auto refused = [&](auto&& call) { return text_of<InvalidArgument>(call); };
  at::Tensor undefined, good = at::ones({2, 3});
  auto transposed = good.t();
  auto whole = at::ones({2}, here(at::kInt));
  auto wrong = at::ones({group.world_size() + 1, 2, 3});
  const int size = group.world_size();
  expect(refused([&] { all_reduce(group, undefined); }) == "all_reduce: a tensor is undefined", "undefined");
  expect(refused([&] { all_reduce(group, transposed); }) == "all_reduce: the tensor (3, 2) Float is not contiguous",
         "contiguous");
  expect(contains(refused([&] { all_reduce(group, whole, ReduceOp::kAverage); }),
                  "kAverage needs a floating point tensor, not Int"),
         "average");
  expect(contains(refused([&] { broadcast(group, good, size); }),
                  "broadcast: root " + std::to_string(size) + " is not a rank of this group"),
         "root");
  expect(contains(refused([&] { all_gather(group, wrong, good); }),
                  "all_gather: output is (" + std::to_string(size + 1) + ", 2, 3) Float but must be (" +
                      std::to_string(size) + ", 2, 3) Float"),
         "rows");
  expect(contains(refused([&] { reduce_scatter(group, good, wrong); }), "reduce_scatter: input is"), "rows of input");
  expect(contains(refused([&] { send(group, good, group.rank()); }), "is this rank itself"), "self");
  expect(contains(refused([&] { recv(group, good, -1); }), "recv: source -1 is not a rank"), "negative");
  barrier(group);
}

/// Each pair sends and receives at once, more than any buffer holds.
void exchange() {
  auto group = join_here();
  constexpr std::int64_t kMany = 1 << 20;
  std::vector<Message> sends, receives;
  for (int peer = 0; peer < group.world_size(); ++peer) {
    if (peer == group.rank()) continue;
    sends.push_back({at::full({kMany}, static_cast<float>(group.rank()), here()), peer});
    receives.push_back({at::empty({kMany}, here()), peer});
  }
  send_recv(group, sends, receives);
  for (const auto& received : receives) {
    expect_equal(received.tensor, at::full({kMany}, static_cast<float>(received.peer)), "send_recv");
  }
  auto self = at::ones({1}, here());
  expect(contains(text_of<InvalidArgument>([&] {
                    send_recv(group, {{self, group.rank()}}, {});
                  }),
                  "is this rank itself"),
         "self");
}

/// The last rank comes when the others have given up waiting once.
void patience() {
  auto group = join_here();
  const int last = group.world_size() - 1;
  auto tensor = at::ones({4});
  auto token = at::zeros({1});
  if (group.rank() == last) {
    for (int peer = 0; peer < last; ++peer) recv(group, token, peer);
    all_reduce(group, tensor);
  } else {
    auto work = all_reduce_async(group, tensor);
    const auto text = text_of<CommunicationError>([&] { work.wait(milliseconds(20)); });
    expect(text == "all_reduce: not through after 20 ms", text);
    send(group, token, last);
    work.wait(std::chrono::seconds(60));
    work.wait();
  }
  expect_equal(tensor, at::full({4}, static_cast<float>(group.world_size())), "all_reduce");
}

}  // namespace

std::map<std::string, Scenario> collective_scenarios() {
  return {{"reductions", reductions},   {"movements", movements}, {"point_to_point", point_to_point},
          {"overlapping", overlapping}, {"refusals", refusals},   {"exchange", exchange},
          {"patience", patience}};
}

}  // namespace taas::test
