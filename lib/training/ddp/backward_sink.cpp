#include "training/ddp/backward_sink.hpp"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>

namespace taas {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kState = "state";

class Sink : public torch::autograd::Function<Sink> {
 public:
  static variable_list forward(AutogradContext* context, const c10::intrusive_ptr<SinkState>& state,
                               at::TensorList outputs) {
    context->set_materialize_grads(false);
    context->saved_data[kState] = c10::IValue::make_capsule(state);
    variable_list passed;
    for (const auto& output : outputs) passed.push_back(state->clones ? output.clone() : output);
    return passed;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    auto state = c10::static_intrusive_pointer_cast<SinkState>(context->saved_data[kState].toCapsule());
    if (state->static_graph && !state->delayed_reduction_queued) {
      torch::autograd::Engine::get_default_engine().queue_callback(
          [reducer = state->reducer] { reducer->delay_all_reduce(); });
      state->delayed_reduction_queued = true;
    }
    variable_list results{at::Tensor()};  // for `state`
    results.insert(results.end(), gradients.begin(), gradients.end());
    return results;
  }
};

}  // namespace

std::vector<at::Tensor> pass_through_sink(const c10::intrusive_ptr<SinkState>& state,
                                          const std::vector<at::Tensor>& outputs) {
  return Sink::apply(state, at::TensorList(outputs));  // a vector would not be searched for tensors
}

}  // namespace taas
