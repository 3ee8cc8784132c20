#include <iostream>

#include "peer_tasks.hpp"
#include "taas/sampler.hpp"

namespace taas::test {
namespace {

/// Each line of the input is "size world rank shuffle drop_last seed epoch"; answers with the indices, one line each.
void print_samples(const std::vector<std::string>& /*arguments*/) {
  DistributedSamplerOptions options;
  std::size_t size = 0;
  std::uint64_t epoch = 0;
  while (std::cin >> size >> options.num_replicas >> options.rank >> options.shuffle >> options.drop_last >>
         options.seed >> epoch) {
    DistributedSampler sampler(size, options);
    sampler.set_epoch(epoch);
    sampler.reset();
    for (auto index : sampler.next(size + 1).value_or(std::vector<std::size_t>{})) std::cout << index << ' ';
    std::cout << '\n';
  }
}

}  // namespace

PeerTasks sampler_peer_tasks() { return {{"samples", {"", print_samples}}}; }

}  // namespace taas::test
