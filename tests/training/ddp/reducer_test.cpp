#include "training/ddp/reducer.hpp"

#include <ATen/ATen.h>

#include <set>

#include "catch.hpp"

namespace reducer_test {

TEST_CASE("Buckets hold parameters of one device each") {
  // meta stands for a second device: nothing else is on every machine.
  std::vector<at::Tensor> tensors;
  for (int layer = 0; layer < 4; ++layer) {
    tensors.push_back(at::empty({8}, layer < 2 ? c10::kCPU : c10::kMeta));
    tensors.push_back(at::empty({8}, layer % 2 == 0 ? c10::kCPU : c10::kMeta));
  }
  const std::vector<bool> dense(tensors.size(), false);
  for (const bool find_unused : {false, true}) {
    const auto buckets =
        taas::first_buckets(tensors, dense, {.bucket_cap_mb = 64.0 / (1 << 20), .find_unused_parameters = find_unused});
    CHECK(buckets.size() >= 2);
    std::multiset<std::size_t> all;
    for (const auto& bucket : buckets) {
      for (auto index : bucket) CHECK(tensors[index].device() == tensors[bucket.front()].device());
      all.insert(bucket.begin(), bucket.end());
    }
    CHECK(all == std::multiset<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7});
  }
}

}  // namespace reducer_test
