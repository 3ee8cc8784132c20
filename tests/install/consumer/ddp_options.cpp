// Options of DistributedDataParallel: ignored parameters, small buckets, parameters that are not always used, steps
// without communication, what the wrapper notes of itself, and the error for a parameter without a gradient.
#include <torch/torch.h>

#include <taas/taas.hpp>

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

struct Network : torch::nn::Module {
  torch::nn::Linear first = register_module("first", torch::nn::Linear(8, 64));
  torch::nn::Linear extra = register_module("extra", torch::nn::Linear(64, 64));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(64, 1));
  at::Tensor offset = register_parameter("offset", torch::zeros({1}));

  at::Tensor forward(const at::Tensor& inputs, bool with_extra) {
    auto hidden = first(inputs).tanh();
    if (with_extra) hidden = hidden + extra(hidden);
    return last(hidden) + offset;
  }
};

// The mean over the ranks of a tensor that each has.
at::Tensor mean_over_ranks(const taas::ProcessGroup& group, const at::Tensor& tensor) {
  auto mean = tensor.detach().clone();
  taas::all_reduce(group, mean, taas::ReduceOp::kAverage);
  return mean;
}

at::Tensor make_inputs(int rank, int step) {
  torch::manual_seed(100 * (rank + 1) + step);
  return torch::randn({16, 8});
}

int main() {
  const auto group = taas::init();
  torch::manual_seed(1);
  const auto network = std::make_shared<Network>();
  taas::DistributedDataParallel model(
      network, group,
      {.bucket_cap_mb = 0.005, .find_unused_parameters = true, .parameters_and_buffers_to_ignore = {"offset"}});

  // Only rank 0 uses `extra`: the others count as zeros. `offset` keeps the gradient of its own rank.
  model.backward(model(make_inputs(group.rank(), 0), group.rank() == 0).square().mean());
  require(network->extra->weight.grad().count_nonzero().item<int>() > 0, "what rank 0 uses has no gradient");
  require(network->first->weight.grad().allclose(mean_over_ranks(group, network->first->weight.grad())),
          "gradients were not averaged");
  require(!network->offset.grad().equal(mean_over_ranks(group, network->offset.grad())), "`offset` was averaged");

  // Two steps, of which only the last one communicates: the average of the sums.
  const auto plain = std::make_shared<Network>();
  taas::load_module_state(*plain, taas::module_state(*network));
  model.zero_grad();
  const auto backward = [&](int step) {
    model.backward(model(make_inputs(group.rank(), step), true).square().mean());
    plain->forward(make_inputs(group.rank(), step), true).square().mean().backward();
  };
  {
    const auto alone = model.no_sync();
    backward(1);
  }
  backward(2);
  require(network->first->weight.grad().allclose(mean_over_ranks(group, plain->first->weight.grad()), 1e-4, 1e-6),
          "the accumulated gradients are wrong");

  const auto buckets = model.logging_data().texts.at("bucket_sizes");
  require(buckets.find(',') != std::string::npos, "there is only one bucket: " + buckets);

  // Without the option, a parameter that gets no gradient is an error: of the iteration after it.
  taas::DistributedDataParallel strict(plain, group);
  std::string error;
  try {
    for (int step = 3; step < 5; ++step) strict.backward(strict(make_inputs(group.rank(), step), false).sum());
  } catch (const taas::Exception& exception) {
    error = exception.what();
  }
  require(error.find("extra.weight") != std::string::npos, "the error does not name the parameter: " + error);
  if (group.rank() == 0) {
    std::cout << "ok ddp_options: buckets of " << buckets << " bytes; then: " << error << std::endl;
  }
}
