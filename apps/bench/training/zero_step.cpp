// zero_step ROUNDS BATCH: a step of a ZeroOptimizer of stage 2 whose step() waits for the gathered parameters, beside
// one whose gathers last into the next forward (overlap_gather). One rank, with eight Linear(1024) under AdamW; rounds
// of 10 steps of each kind take turns. One line of JSON from rank 0: seconds a step by round, and their ratio (median,
// least, largest). Both kinds have to end with the same bits.
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "taas/collectives.hpp"
#include "taas/zero.hpp"

namespace {

constexpr int kLayers = 8, kSteps = 10;
constexpr std::int64_t kWidth = 1024;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

class Training {
 public:
  Training(const taas::ProcessGroup& group, bool overlaps, std::int64_t batch)
      : group_(group), overlaps_(overlaps), batch_(batch) {
    torch::manual_seed(1);
    for (int i = 0; i < kLayers; ++i) layers_.emplace_back(kWidth, kWidth);
    std::vector<at::Tensor> parameters;
    for (const auto& layer : layers_) {
      for (const auto& parameter : layer->parameters()) parameters.push_back(parameter);
    }
    taas::ZeroOptions options{.stage = 2, .bucket_cap_mb = 4, .overlap_gather = overlaps};
    optimizer_.emplace(parameters, group, torch::optim::AdamWOptions(1e-3), options);
  }

  /// Seconds a step.
  double round() {
    taas::barrier(group_);
    const double began = now();
    for (int i = 0; i < kSteps; ++i) step();
    optimizer_->wait();
    return (now() - began) / kSteps;
  }

  [[nodiscard]] at::Tensor parameters() {
    std::vector<at::Tensor> all;
    for (const auto& layer : layers_) all.push_back(layer->weight.detach().flatten());
    return at::cat(all);
  }

 private:
  void step() {
    auto x = at::rand({batch_, kWidth}, generator_);
    optimizer_->zero_grad();
    for (auto& layer : layers_) {
      if (overlaps_) optimizer_->wait_for(*layer);
      x = at::relu(layer->forward(x));
    }
    x.square().mean().backward();
    optimizer_->step();
  }

  taas::ProcessGroup group_;
  bool overlaps_;
  std::int64_t batch_;
  std::vector<torch::nn::Linear> layers_;
  std::optional<taas::ZeroOptimizer> optimizer_;
  at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(7 + static_cast<std::uint64_t>(group_.rank()));
};

std::vector<double> ratios(const std::vector<double>& above, const std::vector<double>& below) {
  std::vector<double> all;
  for (std::size_t i = 0; i < above.size(); ++i) all.push_back(above[i] / below[i]);
  std::sort(all.begin(), all.end());
  return {all[all.size() / 2], all.front(), all.back()};
}

void print(const char* name, const std::vector<double>& seconds) {
  std::cout << '"' << name << "\": [";
  for (std::size_t i = 0; i < seconds.size(); ++i) std::cout << (i == 0 ? "" : ", ") << seconds[i];
  std::cout << ']';
}

}  // namespace

int main(int argc, char** argv) try {
  const int rounds = argc == 3 ? std::atoi(argv[1]) : 0, batch = argc == 3 ? std::atoi(argv[2]) : 0;
  if (rounds < 1 || batch < 1) {
    std::cerr << "usage: zero_step ROUNDS BATCH\n";
    return 2;
  }
  at::set_num_threads(1);
  const auto group = taas::init({.backend = taas::Backend::kGloo});
  Training waits(group, false, batch), overlaps(group, true, batch);
  waits.round();
  overlaps.round();
  std::vector<double> of_waits, of_overlaps;
  for (int i = 0; i < rounds; ++i) {
    if (i % 2 == 0) of_waits.push_back(waits.round());
    of_overlaps.push_back(overlaps.round());
    if (i % 2 != 0) of_waits.push_back(waits.round());
  }
  if (!at::equal(waits.parameters(), overlaps.parameters())) throw std::runtime_error("the parameters differ");
  if (group.rank() != 0) return 0;
  std::cout << "{";
  print("waits", of_waits);
  std::cout << ", ";
  print("overlaps", of_overlaps);
  std::cout << ", ";
  print("waits_over_overlaps", ratios(of_waits, of_overlaps));
  std::cout << "}\n";
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
