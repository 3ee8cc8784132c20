#include <ATen/ATen.h>

#include <chrono>
#include <string>
#include <vector>

#include "group/scenario_tensors.hpp"
#include "rank_scenarios.hpp"
#include "taas/collectives.hpp"
#include "taas/error.hpp"

namespace taas::test {
namespace {

using std::chrono::milliseconds;

at::Tensor bits(const at::Tensor& tensor) { return tensor.reshape(-1).view(at::kByte); }

void expect_equal(const at::Tensor& got, const at::Tensor& wanted, const std::string& what) {
  expect(at::equal(got.cpu(), wanted.cpu()), what + " gave " + got.toString() +
                                                 " that differs: " + std::to_string(got.sum().item<double>()) +
                                                 " in all, not " + std::to_string(wanted.sum().item<double>()));
}

/// (2, 3), each element different, and different on each rank.
at::Tensor numbers(int rank, at::ScalarType type) { return (at::arange(6, here(type)) + 10 * rank + 1).view({2, 3}); }

at::Tensor all_numbers(int ranks, at::ScalarType type) {
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

/// Complex numbers are pairs; what is conjugated only when it is read is not sent as it lies in memory; 16 bit numbers
/// have room for their average, not for their sum.
void reduced_types() {
  auto group = join_here();
  const int size = group.world_size();
  const c10::complex<float> one(1, 2);
  for (auto type : {at::kComplexFloat, at::kComplexDouble}) {
    auto tensor = at::full({3}, one, here(type)) * (group.rank() + 1), average = tensor.clone();
    all_reduce(group, tensor);
    all_reduce(group, average, ReduceOp::kAverage);
    expect_equal(bits(tensor), bits(at::full({3}, one, here(type)) * (size * (size + 1) / 2)),
                 "sum of complex numbers");
    expect(at::allclose(average, at::full({3}, one, here(type)) * ((size + 1) / 2.0)), "average of complex numbers");
  }
  auto conjugated = at::full({2}, one, here(at::kComplexFloat)).conj();
  auto rows = at::zeros({size, 2}, here(at::kComplexFloat));
  all_gather(group, rows, conjugated);
  expect_equal(bits(rows), bits(conjugated.resolve_conj().expand({size, 2}).contiguous()),
               "all_gather of a conjugated tensor");
  for (auto type : {at::kHalf, at::kBFloat16}) {
    auto large = at::full({2}, 40000, here(type)), part = at::zeros({2}, here(type));
    reduce_scatter(group, part, at::full({size, 2}, 40000, here(type)), ReduceOp::kAverage);
    all_reduce(group, large, ReduceOp::kAverage);
    expect(at::allclose(large.to(at::kFloat), at::full({2}, 40000.0f, here()), 0.01), "average of 16 bit numbers");
    expect(at::allclose(part.to(at::kFloat), at::full({2}, 40000.0f, here()), 0.01),
           "scattered average of 16 bit numbers");
  }
  auto any = at::full({2}, group.rank() == 0, here(at::kBool));
  all_reduce(group, any, ReduceOp::kMax);
  expect(any.all().item<bool>(), "kMax of Bool is any");
  const auto refused = [&](at::Tensor tensor, ReduceOp op) {
    return text_of<InvalidArgument>([&] { all_reduce(group, tensor, op); });
  };
  expect(contains(refused(conjugated, ReduceOp::kSum), "is a conjugated view"), "conjugated output");
  expect(contains(refused(at::ones({2}, here(at::kShort)), ReduceOp::kSum), "no backend reduces Short"), "Short");
  expect(contains(refused(any, ReduceOp::kSum), "Bool is reduced by kMin"), "sum of Bool");
  expect(contains(refused(rows, ReduceOp::kMax), "complex numbers are reduced by kSum"), "maximum of complex numbers");
  barrier(group);
}

constexpr at::ScalarType kMoved[] = {at::kBool,        at::kByte,          at::kChar,         at::kShort,  at::kInt,
                                     at::kLong,        at::kUInt16,        at::kUInt32,       at::kUInt64, at::kHalf,
                                     at::kBFloat16,    at::kFloat8_e4m3fn, at::kFloat8_e5m2,  at::kFloat,  at::kDouble,
                                     at::kComplexHalf, at::kComplexFloat,  at::kComplexDouble};

/// (2, 3) of any type, the bytes of which differ between ranks.
at::Tensor of_type(int rank, at::ScalarType type) {
  return (at::arange(6, here()) + 2 * rank).view({2, 3}).remainder(type == at::kBool ? 2 : 7).to(type);
}

/// What is only moved may have any type. Each rank is the root of some.
void movements() {
  auto group = join_here();
  const int size = group.world_size(), next = (group.rank() + 1) % size, before = (group.rank() + size - 1) % size;
  int root = 0;
  for (auto type : kMoved) {
    root = (root + 1) % size;
    const bool is_root = group.rank() == root;
    const std::string name = c10::toString(type);
    auto mine = of_type(group.rank(), type);
    auto rows = at::zeros({size, 2, 3}, here(type));
    auto gathered = is_root ? at::zeros({size, 2, 3}, here(type)) : at::Tensor();
    all_gather(group, rows, mine);
    gather(group, gathered, mine, root);
    auto tensor = mine.clone(), part = at::zeros({2, 3}, here(type)), received = at::zeros({2, 3}, here(type));
    broadcast(group, tensor, root);
    scatter(group, part, is_root ? rows : at::Tensor(), root);
    expect_equal(bits(tensor), bits(of_type(root, type)), "broadcast of " + name);
    expect_equal(bits(part), bits(mine), "scatter of " + name);
    if (size > 1) {
      auto sending = send_async(group, mine, next);
      recv(group, received, before);
      sending.wait();
      expect_equal(bits(received), bits(of_type(before, type)), "recv of " + name);
    }
    for (int rank = 0; rank < size; ++rank) {
      expect_equal(bits(rows[rank]), bits(of_type(rank, type)), "all_gather of " + name);
      if (is_root) expect_equal(bits(gathered[rank]), bits(of_type(rank, type)), "gather of " + name);
    }
  }
}

/// Two messages to the next rank, told apart by their tag. nccl has none.
void tags() {
  auto group = init({.backend = Backend::kGloo});
  const int size = group.world_size(), next = (group.rank() + 1) % size, before = (group.rank() + size - 1) % size;
  const auto first = at::full({1}, 1.0f), second = at::full({1}, 2.0f);
  auto send_first = send_async(group, first, next, 1);
  auto send_second = send_async(group, second, next, 2);
  auto one = at::empty({1}), two = at::empty({1});
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
  expect(contains(refused([&] { new_group(group, {}); }), "a group needs a rank at least"), "empty group");
  expect(contains(refused([&] { new_group(group, {0, 9}); }), "rank 9 is not a rank of this group"), "outside");
  expect(contains(refused([&] { new_group(group, {0, 0}); }), "rank 0 is named twice"), "twice");
  barrier(group);
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
  return {{"reductions", reductions},   {"reduced_types", reduced_types}, {"movements", movements}, {"tags", tags},
          {"overlapping", overlapping}, {"refusals", refusals},           {"patience", patience}};
}

}  // namespace taas::test
