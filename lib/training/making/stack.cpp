#include <ATen/ops/stack.h>

#include "taas/dataset.hpp"
#include "taas/error.hpp"
#include "training/making/data_batch.hpp"

namespace taas {

Tensors stack(const std::vector<Tensors>& examples) {
  Tensors batch;
  if (examples.empty()) return batch;
  for (std::size_t place = 0; place < examples.front().size(); ++place) {
    std::vector<at::Tensor> column;
    for (const auto& example : examples) {
      bool alike = example.size() == examples.front().size() &&
                   example[place].sizes() == examples.front()[place].sizes() &&
                   example[place].scalar_type() == examples.front()[place].scalar_type();
      if (!alike) {
        throw InvalidArgument("examples differ (" + describe(examples.front()) + " and " + describe(example) +
                              "): give DataLoaderOptions a collate function that makes them alike");
      }
      column.push_back(example[place]);
    }
    batch.push_back(at::stack(column));
  }
  return batch;
}

}  // namespace taas
