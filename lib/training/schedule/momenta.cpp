#include "training/schedule/momenta.hpp"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <string>
#include <tuple>

#include "taas/error.hpp"

namespace taas {
namespace {

void set_momentum(torch::optim::OptimizerOptions& options, double momentum, const char* schedule) {
  using namespace torch::optim;
  if (auto* sgd = dynamic_cast<SGDOptions*>(&options)) {
    sgd->momentum(momentum);
  } else if (auto* rmsprop = dynamic_cast<RMSpropOptions*>(&options)) {
    rmsprop->momentum(momentum);
  } else if (auto* adam = dynamic_cast<AdamOptions*>(&options)) {
    adam->betas({momentum, std::get<1>(adam->betas())});
  } else if (auto* adamw = dynamic_cast<AdamWOptions*>(&options)) {
    adamw->betas({momentum, std::get<1>(adamw->betas())});
  } else {
    throw InvalidArgument(std::string(schedule) +
                          ": this optimizer has neither momentum nor beta1; set cycle_momentum to false");
  }
}

}  // namespace

void set_momenta(torch::optim::Optimizer& optimizer, const std::vector<double>& momenta, const char* schedule) {
  auto& groups = optimizer.param_groups();
  for (std::size_t group = 0; group < groups.size(); ++group) {
    set_momentum(groups[group].options(), momenta[group], schedule);
  }
}

}  // namespace taas
