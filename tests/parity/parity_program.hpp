// What main() of the C++ halves does. The Python half writes DIR/cases.txt, DIR/initial.bin and DIR/data.bin, runs both
// halves and compares DIR/cpp.<case>.<rank>.bin with DIR/python.<case>.<rank>.bin. Everything is raw float32.
#pragma once

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "state_files.hpp"
#include "taas/collectives.hpp"

namespace parity {

constexpr int kSteps = 10;
constexpr int kBatch = 4;

struct Inputs {
  taas::ProcessGroup group;
  at::Tensor initial;  ///< enough numbers for the state of any model
  at::Tensor data;     ///< (steps, ranks, batch, inputs + label)
};

inline Inputs read_inputs(const std::filesystem::path& folder) {
  const auto group = taas::init({.backend = taas::Backend::kGloo});
  return {group, read_floats(folder / "initial.bin"),
          read_floats(folder / "data.bin").view({kSteps, group.world_size(), kBatch, -1})};
}

/// `train(words, inputs)` trains the case of a line of cases.txt, which it reads without its name, and returns the
/// module.
template <class Train>
int run_program(int argc, char** argv, Train train) try {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " DIR\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  at::set_num_threads(1);
  const auto inputs = read_inputs(folder);
  std::ifstream cases(folder / "cases.txt");
  for (std::string line; std::getline(cases, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    write_state(*train(words, inputs), folder / ("cpp." + name + "." + std::to_string(inputs.group.rank()) + ".bin"));
  }
  taas::barrier(inputs.group);
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}

}  // namespace parity
