#include <torch/optim/lbfgs.h>

#include <typeindex>
#include <typeinfo>
#include <unordered_map>

#include "taas/optimizers.hpp"
#include "training/optim/kind_of.hpp"
#include "training/optim/lbfgs_state.hpp"
#include "training/optim/state_fields.hpp"
#include "training/optim/state_values.hpp"

namespace taas {
namespace {

const KindOf<torch::optim::SGDOptions, torch::optim::SGDParamState> kSGD;
const KindOf<torch::optim::AdamOptions, torch::optim::AdamParamState> kAdam;
const KindOf<torch::optim::AdamWOptions, torch::optim::AdamWParamState> kAdamW;
const KindOf<torch::optim::RMSpropOptions, torch::optim::RMSpropParamState> kRMSprop;
const KindOf<torch::optim::AdagradOptions, torch::optim::AdagradParamState> kAdagrad;
const KindOf<AdadeltaOptions, AdadeltaParamState> kAdadelta;
const LbfgsKind kLbfgs;

}  // namespace

/// By the class itself: one that is derived may remember something else.
const StateKind* known_kind_of(const torch::optim::Optimizer& optimizer) {
  static const std::unordered_map<std::type_index, const StateKind*> kinds{{typeid(torch::optim::SGD), &kSGD},
                                                                           {typeid(SGD), &kSGD},
                                                                           {typeid(torch::optim::Adam), &kAdam},
                                                                           {typeid(Adam), &kAdam},
                                                                           {typeid(AdamW), &kAdamW},
                                                                           {typeid(torch::optim::AdamW), &kAdamW},
                                                                           {typeid(torch::optim::RMSprop), &kRMSprop},
                                                                           {typeid(RMSprop), &kRMSprop},
                                                                           {typeid(Adadelta), &kAdadelta},
                                                                           {typeid(torch::optim::LBFGS), &kLbfgs},
                                                                           {typeid(torch::optim::Adagrad), &kAdagrad}};
  const auto found = kinds.find(typeid(optimizer));
  return found == kinds.end() ? nullptr : found->second;
}

}  // namespace taas
