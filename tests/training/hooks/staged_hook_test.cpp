#include "training/hooks/staged_hook.hpp"

#include <ATen/ATen.h>

#include <string>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include "catch.hpp"

namespace staged_hook_test {

using namespace taas;

constexpr std::size_t kBuckets = 3;

GradBucket bucket_of(std::size_t index) {
  return GradBucket(std::make_shared<c10d::GradBucket>(index, kBuckets, at::ones({4}), std::vector<std::size_t>{0},
                                                       std::vector<std::size_t>{4}, std::vector<c10::IntArrayRef>{},
                                                       std::vector<at::Tensor>{}, std::nullopt));
}

/// Writes down "<bucket><stage>" for each stage that runs.
class Recorder : public StagedHook {
 public:
  std::string order;

 private:
  std::vector<Stage> stages(const GradBucket& bucket) override {
    const auto stage = [this, index = bucket.index()](char name, double result) {
      return [this, index, name, result] {
        order += std::to_string(index) + name + ' ';
        return result > 0 ? at::full({4}, result) : at::Tensor();
      };
    };
    return {stage('a', 0), stage('b', 0), stage('c', 1.0 + static_cast<double>(bucket.index()))};
  }
};

GradientFuture run(Recorder& hook, std::size_t index) {
  auto bucket = bucket_of(index);
  return hook.run(bucket);
}

TEST_CASE("Buckets go on by a stage each time another one comes, and the last one ends them all") {
  Recorder hook;
  std::vector<GradientFuture> futures;
  for (std::size_t index = 0; index < kBuckets; ++index) futures.push_back(run(hook, index));
  CHECK(hook.order == "0a 1a 0b 2a 0c 1b 1c 2b 2c ");
  for (std::size_t index = 0; index < kBuckets; ++index) {
    REQUIRE(futures[index]->completed());
    CHECK(futures[index]->value().toTensor()[0].item<double>() == 1.0 + static_cast<double>(index));
  }
}

TEST_CASE("What a failed backward has left does not go on in the next one") {
  Recorder hook;
  run(hook, 0);
  hook.order.clear();
  for (std::size_t index = 0; index < kBuckets; ++index) run(hook, index);
  CHECK(hook.order == "0a 1a 0b 2a 0c 1b 1c 2b 2c ");
}

}  // namespace staged_hook_test
