#pragma once

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <type_traits>

#include "taas/adadelta.hpp"

// The fields of the optimizers' options and states, with the names of libtorch's archives, which are Python's:
// each_field(object, visit) calls visit("name", object.name()) for each. The object may be const.

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

template <OneOf<torch::optim::LBFGSOptions> Object, class Visit>
void each_field(Object& of, const Visit& visit) {
  visit("lr", of.lr());
  visit("max_iter", of.max_iter());
  visit("max_eval", of.max_eval());
  visit("tolerance_grad", of.tolerance_grad());
  visit("tolerance_change", of.tolerance_change());
  visit("history_size", of.history_size());
  visit("line_search_fn", of.line_search_fn());
}

/// Without `al`, which each iteration fills before it reads it: what was never filled is no tensor.
template <OneOf<torch::optim::LBFGSParamState> Object, class Visit>
void each_field(Object& of, const Visit& visit) {
  visit("func_evals", of.func_evals());
  visit("n_iter", of.n_iter());
  visit("d", of.d());
  visit("t", of.t());
  visit("old_dirs", of.old_dirs());
  visit("old_stps", of.old_stps());
  visit("ro", of.ro());
  visit("H_diag", of.H_diag());
  visit("prev_flat_grad", of.prev_flat_grad());
  visit("prev_loss", of.prev_loss());
}

}  // namespace taas
