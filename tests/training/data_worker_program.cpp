// A data worker of data_test.cpp: the same program as the rank, as far as loaders go.

#include <iostream>

#include "data_examples.hpp"

int main() {
  taas::test::Loaders loaders;
  try {
    return taas::serve_data(loaders.served()) ? 0 : 3;
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 2;
  }
}
