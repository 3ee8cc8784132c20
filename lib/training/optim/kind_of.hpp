#pragma once

#include <torch/types.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "training/checkpoint/pickle.hpp"
#include "training/optim/state_values.hpp"

namespace taas {

/// Adds a field to a dictionary, but for tensors that are not there.
class FieldWriter {
 public:
  FieldWriter(StateFields& to, StateTensors tensors) : to_(to), tensors_(tensors) {}

  void operator()(const char* name, const at::Tensor& tensor) const {
    if (tensor.defined()) to_.insert(name, given(tensor));
  }
  void operator()(const char* name, const std::deque<at::Tensor>& tensors) const {
    auto list = plain_list();
    for (const auto& tensor : tensors) list.push_back(given(tensor));
    to_.insert(name, list);
  }
  /// None for an optional one that is not there, as in Python.
  template <class Number>
  void operator()(const char* name, const Number& number) const {
    to_.insert(name, c10::IValue(number));
  }

 private:
  [[nodiscard]] at::Tensor given(const at::Tensor& tensor) const {
    const auto own = tensor.detach();
    return tensors_ == StateTensors::kShared ? own : own.to(at::kCPU, false, /*copy=*/true);
  }

  StateFields& to_;
  StateTensors tensors_;
};

/// Nobody but the state that is given away has this tensor.
inline bool is_sole(const at::Tensor& tensor) {
  constexpr std::size_t kHere = 2;  // in the state's dictionary or list, and in the caller's hand
  return tensor.use_count() <= kHere && tensor.storage().use_count() == 1;
}

/// Reads a field from a dictionary into its place: tensors may be missing, numbers not.
class FieldReader {
 public:
  FieldReader(const StateFields& from, c10::Device device, bool takes) : from_(from), device_(device), takes_(takes) {}

  void operator()(const char* name, at::Tensor& place) const {
    const auto found = from_.find(name);
    if (found == from_.end() || found->value().isNone()) return;
    place = own(found->value().toTensor());
  }
  void operator()(const char* name, std::deque<at::Tensor>& place) const {
    const auto found = from_.find(name);
    if (found == from_.end()) return;
    for (const auto& value : found->value().toListRef()) place.push_back(own(value.toTensor()));
  }
  void operator()(const char* name, double& place) const { place = number_from(from_.at(name)); }
  void operator()(const char* name, bool& place) const { place = from_.at(name).toBool(); }
  void operator()(const char* name, std::int64_t& place) const {
    place = static_cast<std::int64_t>(number_from(from_.at(name)));
  }
  void operator()(const char* name, std::tuple<double, double>& place) const {
    const auto& value = from_.at(name);
    const auto both = value.isList() ? value.toListRef().vec() : value.toTupleRef().elements().vec();
    place = {number_from(both.at(0)), number_from(both.at(1))};
  }
  void operator()(const char* name, std::optional<std::int64_t>& place) const {
    place = from_.at(name).toOptional<std::int64_t>();
  }
  void operator()(const char* name, std::optional<std::string>& place) const {
    place = from_.at(name).toOptional<std::string>();
  }

 private:
  [[nodiscard]] at::Tensor own(const at::Tensor& tensor) const {
    return tensor.to(device_, /*non_blocking=*/false, /*copy=*/!takes_ || !is_sole(tensor));
  }

  const StateFields& from_;
  c10::Device device_;
  bool takes_;
};

/// A kind whose options and states have an each_field().
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

}  // namespace taas
