#include <ATen/ATen.h>

#include <iostream>

#include "taas/collectives.hpp"

int main() {
  auto group = taas::init({.backend = taas::Backend::kGloo});
  auto tensor = at::full({2}, 3.0);
  taas::all_reduce(group, tensor);
  std::cout << "rank " << group.rank() << " of " << group.world_size() << ", sum " << tensor[1].item<int>() << '\n';
}
