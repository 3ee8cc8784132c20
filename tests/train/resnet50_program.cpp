// resnet50_peer FROM TO: loads weights and images that Python has saved, and saves what the network makes of them.
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
  taas::load_state_dict(*network, checkpoint.model);
  network->eval();
  torch::NoGradGuard no_grad;
  const auto images = checkpoint.extra.at("images").toTensor();
  taas::Checkpoint results;
  results.extra["whole"] = network->forward(images);
  taas::save_checkpoint(argv[2], results);
}
