// Which samples of a dataset each rank reads: without a sampler, and with DistributedSampler.
//
//     taas-run --nproc-per-node 4 sampler_tour
#include <ATen/ATen.h>

#include <cstddef>
#include <iostream>
#include <string>
#include <taas/collectives.hpp>
#include <taas/error.hpp>
#include <taas/process_group.hpp>
#include <taas/sampler.hpp>

namespace {

constexpr std::size_t kSamples = 10;

std::string text_of(const at::Tensor& indices) {
  std::string text;
  for (std::int64_t i = 0; i < indices.numel(); ++i) text += " " + std::to_string(indices[i].item<std::int64_t>());
  return text;
}

/// One line for each rank, from the first, which collects what the others read.
void show(const taas::ProcessGroup& group, const std::string& title, const at::Tensor& indices) {
  const auto mine = indices.to(group.device());
  at::Tensor all;
  if (group.rank() == 0) all = at::empty({group.world_size(), mine.numel()}, mine.options());
  taas::gather(group, all, mine);
  if (group.rank() != 0) return;
  std::cout << title << '\n';
  for (int rank = 0; rank < group.world_size(); ++rank) {
    std::cout << "  rank " << rank << ":" << text_of(all[rank].cpu()) << '\n';
  }
  std::cout << std::flush;
}

taas::DistributedSamplerOptions options_of(const taas::ProcessGroup& group, bool shuffle, bool drop_last) {
  return {.num_replicas = static_cast<std::size_t>(group.world_size()),
          .rank = static_cast<std::size_t>(group.rank()),
          .shuffle = shuffle,
          .drop_last = drop_last};
}

}  // namespace

int main() try {
  const auto group = taas::init();
  show(group, "no sampler: every rank reads everything", at::arange(static_cast<std::int64_t>(kSamples), at::kLong));

  taas::DistributedSampler in_order(kSamples, options_of(group, false, false));
  show(group, "shuffle = false: each rank reads its share, filled up from the front", in_order.indices());
  taas::DistributedSampler even(kSamples, options_of(group, false, true));
  show(group, "drop_last = true: the uneven rest is left out", even.indices());

  taas::DistributedSampler shuffled(kSamples, options_of(group, true, false));
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    shuffled.set_epoch(epoch);
    show(group, "shuffle = true, epoch " + std::to_string(epoch), shuffled.indices());
  }
} catch (const taas::Exception& error) {
  std::cerr << "sampler_tour: " << error.what() << '\n';
  return 1;
}
