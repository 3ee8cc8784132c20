#include <vector>

#include "group/scenario_tensors.hpp"
#include "rank_scenarios.hpp"
#include "taas/collectives.hpp"
#include "taas/error.hpp"

namespace taas::test {
namespace {

constexpr at::ScalarType kMoved[] = {at::kBool,        at::kByte,          at::kChar,         at::kShort,  at::kInt,
                                     at::kLong,        at::kUInt16,        at::kUInt32,       at::kUInt64, at::kHalf,
                                     at::kBFloat16,    at::kFloat8_e4m3fn, at::kFloat8_e5m2,  at::kFloat,  at::kDouble,
                                     at::kComplexHalf, at::kComplexFloat,  at::kComplexDouble};

/// (2, 3) of any type, the bytes of which differ between ranks.
at::Tensor of_type(int rank, at::ScalarType type) {
  return (at::arange(6, here()) + 2 * rank).view({2, 3}).remainder(type == at::kBool ? 2 : 7).to(type);
}

/// What is only moved may have any type.
void types() {
  auto group = join_here();
  const int size = group.world_size(), next = (group.rank() + 1) % size, before = (group.rank() + size - 1) % size;
  for (auto type : kMoved) {
    const std::string name = c10::toString(type);
    auto mine = of_type(group.rank(), type);
    auto rows = at::zeros({size, 2, 3}, here(type)), gathered = at::zeros({size, 2, 3}, here(type));
    all_gather(group, rows, mine);
    gather(group, gathered, mine, 0);
    auto tensor = mine.clone(), part = at::zeros({2, 3}, here(type)), received = at::zeros({2, 3}, here(type));
    broadcast(group, tensor, size - 1);
    scatter(group, part, group.rank() == 0 ? rows : at::Tensor(), 0);
    expect_equal(bits(tensor), bits(of_type(size - 1, type)), "broadcast of " + name);
    expect_equal(bits(part), bits(mine), "scatter of " + name);
    if (size > 1) {
      auto sending = send_async(group, mine, next);
      recv(group, received, before);
      sending.wait();
      expect_equal(bits(received), bits(of_type(before, type)), "recv of " + name);
    }
    for (int rank = 0; rank < size; ++rank) {
      expect_equal(bits(rows[rank]), bits(of_type(rank, type)), "all_gather of " + name);
      if (group.rank() == 0) expect_equal(bits(gathered[rank]), bits(of_type(rank, type)), "gather of " + name);
    }
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

}  // namespace

std::map<std::string, Scenario> type_scenarios() { return {{"types", types}, {"reduced_types", reduced_types}}; }

}  // namespace taas::test
