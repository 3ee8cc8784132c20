// One program for every machine: no GPU, it trains on the CPU; one GPU, in the usual way; more, distributed.
//
//     auto_mode                                  # as it is
//     taas-run --nproc-per-node gpu auto_mode    # a process for each GPU
//     taas-run --nproc-per-node 4 auto_mode      # or as many as you say
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/utils.h>

#include <iomanip>
#include <iostream>
#include <string>
#include <taas/taas.hpp>

namespace {

constexpr int kEpochs = 10;
constexpr std::int64_t kPoints = 2048;
constexpr std::int64_t kBatch = 32;

/// Two layers, for points of the plane.
struct ClassifierImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& points) { return second(first(points).relu()).squeeze(1); }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(2, 32));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(32, 1));
};
TORCH_MODULE(Classifier);

taas::DistributedSampler sampler_for(const taas::ProcessGroup& group) {
  return {static_cast<std::size_t>(kPoints),
          {.num_replicas = static_cast<std::size_t>(group.world_size()),
           .rank = static_cast<std::size_t>(group.rank()),
           .seed = 1}};
}

/// Returns the mean loss of the last epoch, of this rank's share.
double train(const taas::ProcessGroup& group, const at::Tensor& points, const at::Tensor& inside) {
  Classifier network;
  network->to(group.device());
  taas::DistributedDataParallel model(network, group);  // alone it does nothing
  torch::optim::Adam optimizer(network->parameters(), torch::optim::AdamOptions(0.01));
  auto sampler = sampler_for(group);
  double mean = 0;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    sampler.set_epoch(static_cast<std::uint64_t>(epoch));
    const auto batches = sampler.indices().to(group.device()).split(kBatch);
    auto total = at::zeros({}, group.device());
    for (const auto& batch : batches) {
      model.zero_grad();
      auto loss =
          at::binary_cross_entropy_with_logits(model(points.index_select(0, batch)), inside.index_select(0, batch));
      loss.backward();
      optimizer.step();
      total += loss.detach();
    }
    mean = total.item<double>() / static_cast<double>(batches.size());
  }
  return mean;
}

}  // namespace

int main() try {
  const auto group = taas::init();  // the device: a GPU of its own for each rank, else the CPU
  torch::manual_seed(0);
  const auto points = (at::rand({kPoints, 2}) * 3 - 1.5).to(group.device());
  const auto inside = (points.square().sum(1) < 1).to(at::kFloat);
  const double loss = train(group, points, inside);
  if (group.rank() != 0) return 0;
  const auto mode = group.world_size() > 1 ? std::to_string(group.world_size()) + " processes" : "one process";
  std::cout << mode << " on " << (group.device().is_cuda() ? "cuda" : "cpu") << ": loss " << std::fixed
            << std::setprecision(4) << loss << std::endl;
} catch (const taas::Exception& error) {
  std::cerr << "auto_mode: " << error.what() << '\n';
  return 1;
}
