#pragma once

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <cstdint>
#include <tuple>
#include <type_traits>

#include "taas/adadelta.hpp"
#include "taas/checkpoint.hpp"
#include "training/checkpoint/optimizer_state.hpp"

// The fields of the optimizers' options and states, with the names of libtorch's archives, which are Python's:
// each_field(object, visit) calls visit("name", object.name()) for each. The object may be const. And how they are
// written to a dictionary and read from one.

namespace taas {

template <class Object, class... Kinds>
concept OneOf = (std::is_same_v<std::remove_const_t<Object>, Kinds> || ...);

template <OneOf<torch::optim::SGDOptions> Object, class Visit>
void each_field(Object& of, const Visit& visit) {
  visit("lr", of.lr());
  visit("momentum", of.momentum());
  visit("dampening", of.dampening());
  visit("weight_decay", of.weight_decay());
  visit("nesterov", of.nesterov());
}

template <OneOf<torch::optim::SGDParamState> Object, class Visit>
void each_field(Object& of, const Visit& visit) {
  visit("momentum_buffer", of.momentum_buffer());
}

template <OneOf<torch::optim::AdamOptions, torch::optim::AdamWOptions> Object, class Visit>
void each_field(Object& of, const Visit& visit) {
  visit("lr", of.lr());
  visit("betas", of.betas());
  visit("eps", of.eps());
  visit("weight_decay", of.weight_decay());
  visit("amsgrad", of.amsgrad());
}

template <OneOf<torch::optim::AdamParamState, torch::optim::AdamWParamState> Object, class Visit>
void each_field(Object& of, const Visit& visit) {
  visit("step", of.step());
  visit("exp_avg", of.exp_avg());
  visit("exp_avg_sq", of.exp_avg_sq());
  visit("max_exp_avg_sq", of.max_exp_avg_sq());
}

template <OneOf<torch::optim::RMSpropOptions> Object, class Visit>
void each_field(Object& of, const Visit& visit) {
  visit("lr", of.lr());
  visit("alpha", of.alpha());
  visit("eps", of.eps());
  visit("weight_decay", of.weight_decay());
  visit("momentum", of.momentum());
  visit("centered", of.centered());
}

template <OneOf<torch::optim::RMSpropParamState> Object, class Visit>
void each_field(Object& of, const Visit& visit) {
  visit("step", of.step());
  visit("square_avg", of.square_avg());
  visit("momentum_buffer", of.momentum_buffer());
  visit("grad_avg", of.grad_avg());
}

template <OneOf<torch::optim::AdagradOptions> Object, class Visit>
void each_field(Object& of, const Visit& visit) {
  visit("lr", of.lr());
  visit("lr_decay", of.lr_decay());
  visit("weight_decay", of.weight_decay());
  visit("initial_accumulator_value", of.initial_accumulator_value());
  visit("eps", of.eps());
}

template <OneOf<torch::optim::AdagradParamState> Object, class Visit>
void each_field(Object& of, const Visit& visit) {
  visit("step", of.step());
  visit("sum", of.sum());
}

template <OneOf<AdadeltaOptions> Object, class Visit>
void each_field(Object& of, const Visit& visit) {
  visit("lr", of.lr());
  visit("rho", of.rho());
  visit("eps", of.eps());
  visit("weight_decay", of.weight_decay());
}

template <OneOf<AdadeltaParamState> Object, class Visit>
void each_field(Object& of, const Visit& visit) {
  visit("step", of.step());
  visit("square_avg", of.square_avg());
  visit("acc_delta", of.acc_delta());
}

/// Adds a field to a dictionary, but for tensors that are not there.
class FieldWriter {
 public:
  FieldWriter(StateFields& to, StateTensors tensors) : to_(to), tensors_(tensors) {}

  void operator()(const char* name, const at::Tensor& tensor) const {
    if (tensor.defined()) to_.insert(name, given(tensor));
  }
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
  constexpr std::size_t kHere = 2;  // in the state's dictionary, and in the caller's hand
  return tensor.use_count() <= kHere && tensor.storage().use_count() == 1;
}

/// Python gives whole numbers and tensors for broken numbers, too.
inline double number_from(const c10::IValue& value) {
  return value.isTensor() ? value.toTensor().item<double>() : value.toScalar().toDouble();
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

 private:
  [[nodiscard]] at::Tensor own(const at::Tensor& tensor) const {
    return tensor.to(device_, /*non_blocking=*/false, /*copy=*/!takes_ || !is_sole(tensor));
  }

  const StateFields& from_;
  c10::Device device_;
  bool takes_;
};

}  // namespace taas
