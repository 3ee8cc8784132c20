#include <torch/types.h>

#include <string>
#include <tuple>
#include <typeindex>
#include <typeinfo>
#include <unordered_map>

#include "taas/optimizers.hpp"
#include "training/checkpoint/pickle.hpp"
#include "training/optim/state_fields.hpp"
#include "training/optim/state_values.hpp"

namespace taas {
namespace {

using Betas = std::tuple<double, double>;

/// Adds a field to a dictionary, but for tensors that are not there.
class FieldWriter {
 public:
  FieldWriter(StateFields& to, StateTensors tensors) : to_(to), tensors_(tensors) {}

  void operator()(const char* name, const at::Tensor& tensor) const {
    if (!tensor.defined()) return;
    const auto own = tensor.detach();
    to_.insert(name, tensors_ == StateTensors::kShared ? own : own.to(at::kCPU, false, /*copy=*/true));
  }
  template <class Number>
  void operator()(const char* name, const Number& number) const {
    to_.insert(name, c10::IValue(number));
  }

 private:
  StateFields& to_;
  StateTensors tensors_;
};

/// Nobody but the state that is given away has this tensor.
bool is_sole(const at::Tensor& tensor) {
  constexpr std::size_t kHere = 2;  // in the state's dictionary, and in the caller's hand
  return tensor.use_count() <= kHere && tensor.storage().use_count() == 1;
}

/// Reads a field from a dictionary into its place: tensors may be missing, numbers not.
class FieldReader {
 public:
  FieldReader(const StateFields& from, c10::Device device, bool takes) : from_(from), device_(device), takes_(takes) {}

  void operator()(const char* name, at::Tensor& place) const {
    const auto found = from_.find(name);
    if (found == from_.end() || found->value().isNone()) return;
    const auto tensor = found->value().toTensor();
    place = tensor.to(device_, /*non_blocking=*/false, /*copy=*/!takes_ || !is_sole(tensor));
  }
  void operator()(const char* name, double& place) const { place = number_from(from_.at(name)); }
  void operator()(const char* name, bool& place) const { place = from_.at(name).toBool(); }
  void operator()(const char* name, std::int64_t& place) const {
    place = static_cast<std::int64_t>(number_from(from_.at(name)));
  }
  void operator()(const char* name, Betas& place) const {
    const auto& value = from_.at(name);
    const auto both = value.isList() ? value.toListRef().vec() : value.toTupleRef().elements().vec();
    place = {number_from(both.at(0)), number_from(both.at(1))};
  }

 private:
  const StateFields& from_;
  c10::Device device_;
  bool takes_;
};

template <class Options, class State>
class KindOf : public StateKind {
 public:
  [[nodiscard]] StateFields options(const torch::optim::OptimizerOptions& of) const override {
    auto fields = plain_dict();
    each_field(dynamic_cast<const Options&>(of), FieldWriter(fields, StateTensors::kShared));
    return fields;
  }
  [[nodiscard]] StateFields state(const torch::optim::OptimizerParamState& of, StateTensors tensors) const override {
    auto fields = plain_dict();
    each_field(dynamic_cast<const State&>(of), FieldWriter(fields, tensors));
    return fields;
  }
  [[nodiscard]] std::unique_ptr<torch::optim::OptimizerOptions> options_with(const torch::optim::OptimizerOptions& from,
                                                                             const StateFields& fields) const override {
    auto made = from.clone();
    each_field(dynamic_cast<Options&>(*made), FieldReader(fields, at::kCPU, false));
    return made;
  }
  [[nodiscard]] std::unique_ptr<torch::optim::OptimizerParamState> state_with(const StateFields& fields,
                                                                              c10::Device device,
                                                                              bool takes) const override {
    auto made = std::make_unique<State>();
    each_field(*made, FieldReader(fields, device, takes));
    return made;
  }
};

const KindOf<torch::optim::SGDOptions, torch::optim::SGDParamState> kSGD;
const KindOf<torch::optim::AdamOptions, torch::optim::AdamParamState> kAdam;
const KindOf<torch::optim::AdamWOptions, torch::optim::AdamWParamState> kAdamW;
const KindOf<torch::optim::RMSpropOptions, torch::optim::RMSpropParamState> kRMSprop;
const KindOf<torch::optim::AdagradOptions, torch::optim::AdagradParamState> kAdagrad;
const KindOf<AdadeltaOptions, AdadeltaParamState> kAdadelta;

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
                                                                           {typeid(Adadelta), &kAdadelta},
                                                                           {typeid(torch::optim::Adagrad), &kAdagrad}};
  const auto found = kinds.find(typeid(optimizer));
  return found == kinds.end() ? nullptr : found->second;
}

}  // namespace taas
