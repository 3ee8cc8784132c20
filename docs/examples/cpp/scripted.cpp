// Trains a module of Python's that torch.jit.save has written, over any number of ranks, and writes it for inference.
// Quickstart has built it in build/release/bin. Elsewhere CMakeLists.txt beside it says how.
//
//     taas-run --nproc-per-node 2 build/release/bin/scripted MODULE TRAINED STEPS
//
// The module takes 8 numbers and gives one, of which it is to learn that it is their sum:
//
//     from torch import jit, nn
//     jit.script(nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 1))).save("module.pt")
//
// Comments name the pages of docs where a part is explained.
#include <ATen/ATen.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/script.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <taas/taas.hpp>
#include <utility>

namespace {

constexpr std::int64_t kInputs = 8, kBatch = 16;
constexpr double kRate = 0.01;

/// A module of TorchScript as libtorch's modules are: its own tensors, by the names that they have in Python.
struct ScriptedImpl : torch::nn::Module {  // cpp/training.md, "Modules of Python"
  explicit ScriptedImpl(torch::jit::Module module) : script(std::move(module)) {
    for (const auto& each : script.named_parameters(/*recurse=*/false)) {
      register_parameter(each.name, each.value, each.value.requires_grad());
    }
    for (const auto& each : script.named_buffers(/*recurse=*/false)) register_buffer(each.name, each.value);
    for (const auto& each : script.named_children()) {
      register_module(each.name, std::make_shared<ScriptedImpl>(each.value));
    }
  }
  at::Tensor forward(const at::Tensor& x) { return script.forward({x}).toTensor(); }
  void train(bool on) override {
    torch::nn::Module::train(on);
    script.train(on);
  }

  torch::jit::Module script;
};
TORCH_MODULE(Scripted);

/// Numbers (kBatch, kInputs) that no other rank or step has.
at::Tensor inputs_of(const taas::ProcessGroup& group, std::int64_t step) {
  at::manual_seed(static_cast<std::uint64_t>(step * group.world_size() + group.rank()));
  return at::randn({kBatch, kInputs});
}

void train(const std::string& path, const std::string& trained, std::int64_t steps) {
  const auto group = taas::init();  // cpp/ddp.md, "Process groups in C++"
  Scripted network(torch::jit::load(path));
  network->to(group.device());
  taas::DistributedDataParallel model(network, group, {.gradient_as_bucket_view = true});  // cpp/ddp.md
  model.train();
  taas::AdamW optimizer(network->parameters(), torch::optim::AdamWOptions(kRate));
  double last_loss = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto inputs = inputs_of(group, step).to(group.device());
    model.zero_grad();
    const auto loss = torch::nn::functional::mse_loss(model(inputs), inputs.sum(1, /*keepdim=*/true));
    model.backward(loss);
    optimizer.step();
    last_loss = loss.item<double>();
  }
  if (group.rank() != 0) return;
  network->eval();
  network->to(at::kCPU);
  network->script.save(trained);  // with its code: torch.jit.load in Python and C++, without the class
  std::cout << "step " << steps << ", loss " << last_loss << std::endl;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::cerr << "usage: scripted MODULE TRAINED STEPS\n";
    return 2;
  }
  train(argv[1], argv[2], std::stoll(argv[3]));
} catch (const std::exception& error) {
  std::cerr << "scripted: " << error.what() << '\n';
  return 1;
}
