#include "taas/sync_batch_norm.hpp"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>

#include <sstream>

#include "../spawn_ranks.hpp"
#include "catch.hpp"
#include "taas/error.hpp"

namespace sync_batch_norm_test {

using taas::test::problems;
using taas::test::spawn_ranks;

namespace nn = torch::nn;

/// A class of a program's own.
struct BlockImpl : nn::Module {
  BlockImpl() { register_module("bn", bn); }
  at::Tensor forward(const at::Tensor& input) { return bn(input); }
  nn::BatchNorm1d bn{2};
};
TORCH_MODULE(Block);

TEST_CASE("Statistics are those of the batches of all ranks, whatever their sizes, 0 included") {
  for (int ranks : {2, 3, 4}) {
    INFO(ranks << " ranks");
    CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "sync_batch_norm", {.world_size = ranks})) == "");
  }
}

TEST_CASE("A converted model trains on all ranks as one process does on the whole batch") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "sync_batch_norm_training", {.world_size = 2})) == "");
}

TEST_CASE("A converted Sequential has the tensors and the names of the other, running statistics among them") {
  nn::Sequential before(nn::Linear(3, 2), nn::BatchNorm1d(2), nn::BatchNorm1d(2), nn::ReLU());
  before->forward(at::randn({8, 3}));
  before->eval();
  const auto parameters = before->named_parameters(), buffers = before->named_buffers();
  auto after = taas::convert_sync_batchnorm(before, taas::init());
  CHECK_FALSE(after->is_training());
  REQUIRE(after->named_parameters().keys() == parameters.keys());
  for (const auto& item : after->named_parameters()) CHECK(item.value().is_same(parameters[item.key()]));
  REQUIRE(after->named_buffers().keys() == buffers.keys());
  for (const auto& item : after->named_buffers()) CHECK(at::equal(item.value(), buffers[item.key()]));
  CHECK(at::equal(after->forward(at::ones({4, 3})), before->forward(at::ones({4, 3}))));
  std::ostringstream text;
  text << *after->at<taas::SyncBatchNormImpl>(1).clone();
  CHECK_THAT(text.str(), ContainsSubstring("taas::SyncBatchNorm(2, eps=1e-05, momentum=0.1"));
}

TEST_CASE("A BatchNorm that is a member of another class is refused by name") {
  const auto group = taas::init();
  nn::Sequential model(nn::Linear(2, 2), Block());
  CHECK_THROWS_WITH(taas::convert_sync_batchnorm(model, group),
                    ContainsSubstring("cannot replace 1.bn") && ContainsSubstring("declare it as taas::SyncBatchNorm"));
}

TEST_CASE("Input of another shape is refused") {
  taas::SyncBatchNorm norm(3);
  taas::set_sync_batchnorm_group(*norm, taas::init());
  CHECK_THROWS_WITH(norm(at::ones({4})), ContainsSubstring("wants [batch, 3, …], and got 1 dimensions"));
  CHECK_THROWS_WITH(norm(at::ones({4, 2})), ContainsSubstring("got 2 channels"));
}

}  // namespace sync_batch_norm_test
