#include <ATen/Functions.h>

#include <string>

#include "peer_tasks.hpp"
#include "taas/checkpoint.hpp"
#include "taas/clip_grad.hpp"

namespace taas::test {
namespace {

std::vector<at::Tensor> with_gradients(const StateDict& gradients) {
  std::vector<at::Tensor> parameters;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto& gradient = gradients.at(std::to_string(i));
    parameters.push_back(at::zeros_like(gradient));
    parameters.back().mutable_grad() = gradient.clone();
  }
  parameters.insert(parameters.begin() + 1, at::zeros({3}));  // one without
  return parameters;
}

/// The gradients in a file, clipped by each kind of norm.
void clip(const std::vector<std::string>& arguments) {
  const auto gradients = load_checkpoint(arguments.at(0)).model;
  StateDict clipped;
  for (const std::string name : {"0", "1", "2", "3.5", "inf", "-inf"}) {
    for (const double max_norm : {0.7, 1e6}) {
      const auto parameters = with_gradients(gradients);
      const auto key = name + "/" + std::to_string(static_cast<int>(max_norm));
      clipped[key] = clip_grad_norm_(parameters, max_norm, {.norm_type = std::stod(name)});
      int number = 0;
      for (const auto& parameter : parameters) {
        if (parameter.grad().defined()) clipped[key + "/" + std::to_string(number++)] = parameter.grad();
      }
    }
  }
  save_checkpoint(arguments.at(1), {.model = clipped});
}

}  // namespace

PeerTasks clip_peer_tasks() { return {{"clip", {"FROM TO", clip}}}; }

}  // namespace taas::test
