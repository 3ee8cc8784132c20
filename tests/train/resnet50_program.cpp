// resnet50_peer FROM TO: loads weights and images that Python has saved, and saves what the network makes of them,
// whole, cut in two and as a pipeline.
#include <torch/utils.h>

#include <iostream>

#include "resnet50.hpp"
#include "taas/checkpoint.hpp"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: resnet50_peer FROM TO\n";
    return 2;
  }
  auto checkpoint = taas::load_checkpoint(argv[1]);
  taas::train::ResNet50 network;
  taas::load_module_state(*network, checkpoint.model);
  network->eval();
  torch::NoGradGuard no_grad;
  const auto images = checkpoint.extra.at("images").toTensor();
  taas::Checkpoint results;
  results.extra["whole"] = network->forward(images);
  network->cut(c10::kCPU, c10::kCPU);
  results.extra["cut"] = network->forward(images);
  for (int size : {1, 2, 8}) {
    network->cut(c10::kCPU, c10::kCPU, size);
    results.extra["parts of " + std::to_string(size)] = network->forward(images);
  }
  taas::save_checkpoint(argv[2], results);
}
