// SyncBatchNorm: ranks with batches of different sizes have the outputs, statistics and gradients of one process that
// has the whole batch.
#include <torch/torch.h>

#include <taas/taas.hpp>

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

void require_close(const at::Tensor& ours, const at::Tensor& expected, const std::string& what) {
  if (!at::allclose(ours, expected, 1e-4, 1e-5)) {
    throw std::runtime_error(what + " differs by up to " +
                             std::to_string((ours - expected).abs().max().item<double>()));
  }
}

template <class Norm>
struct Network : torch::nn::Module {
  torch::nn::Conv2d conv{torch::nn::Conv2dOptions(1, 4, 3)};
  Norm norm{4};

  Network() {
    register_module("conv", conv);
    register_module("norm", norm);
  }
  at::Tensor forward(const at::Tensor& images) { return norm(conv(images)).relu(); }
};

int main() {
  const auto group = taas::init();
  torch::manual_seed(2);
  const auto network = std::make_shared<Network<taas::SyncBatchNorm>>();
  const auto whole = std::make_shared<Network<torch::nn::BatchNorm2d>>();
  taas::load_module_state(*whole, taas::module_state(*network));
  taas::set_sync_batchnorm_group(*network, group);
  taas::DistributedDataParallel model(network, group);
  taas::SGD optimizer(network->parameters(), torch::optim::SGDOptions(0.1));
  taas::SGD whole_optimizer(whole->parameters(), torch::optim::SGDOptions(0.1));

  // Rank r has r + 2 of the images.
  std::vector<std::int64_t> sizes;
  for (int rank = 0; rank < group.world_size(); ++rank) sizes.push_back(rank + 2);
  const auto total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0));
  for (int step = 0; step < 4; ++step) {
    torch::manual_seed(100 + step);
    const auto images = torch::randn({total, 1, 8, 8}) * 3 + 1;
    const auto weights = torch::randn({total, 4, 6, 6});
    const auto our_images = images.split_with_sizes(sizes)[group.rank()];
    const auto our_weights = weights.split_with_sizes(sizes)[group.rank()];

    model.zero_grad();
    const auto outputs = model(our_images);
    // Gradients are averaged over the ranks, and the loss is a mean over all images: hence the factor.
    model.backward((outputs * our_weights).sum() * (double(group.world_size()) / double(total)));

    whole_optimizer.zero_grad();
    const auto whole_outputs = whole->forward(images);
    ((whole_outputs * weights).sum() / double(total)).backward();

    require_close(outputs, whole_outputs.split_with_sizes(sizes)[group.rank()], "the output");
    require_close(network->norm->weight.grad(), whole->norm->weight.grad(), "the gradient of the norm's weight");
    require_close(network->conv->weight.grad(), whole->conv->weight.grad(), "the gradient of the convolution");
    optimizer.step();
    whole_optimizer.step();
  }
  require_close(network->norm->running_mean, whole->norm->running_mean, "the running mean");
  require_close(network->norm->running_var, whole->norm->running_var, "the running variance");

  // The norms of a Sequential are replaced, and have the same parameters.
  torch::nn::Sequential plain(torch::nn::Linear(4, 3), torch::nn::BatchNorm1d(3));
  const auto before = plain->parameters();
  auto converted = taas::convert_sync_batchnorm(plain, group);
  require(converted[1]->as<taas::SyncBatchNorm>() != nullptr, "the BatchNorm1d was not replaced");
  require(converted->parameters().back().is_same(before.back()), "the new norm has another bias");

  if (group.rank() == 0) {
    std::cout << "ok batch_norm_over_ranks: " << total << " images on " << group.world_size() << " ranks" << std::endl;
  }
}
