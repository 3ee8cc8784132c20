#include "taas/recompute.hpp"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <mutex>
#include <utility>

#include "taas/unique_tensors.hpp"

namespace taas {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// A default generator, and its state; restores it at the end of a scope.
class KeptGenerator {
 public:
  explicit KeptGenerator(c10::Device device)
      : generator_(at::globalContext().defaultGenerator(device)), state_(now()) {}

  [[nodiscard]] at::Tensor now() {
    const std::scoped_lock lock(generator_.mutex());
    return generator_.get_state();
  }
  void set(const at::Tensor& state) {
    const std::scoped_lock lock(generator_.mutex());
    generator_.set_state(state);
  }
  [[nodiscard]] const at::Tensor& state() const { return state_; }

 private:
  at::Generator generator_;
  at::Tensor state_;
};

/// The types in which a device computes; put back at the end of a scope.
struct AutocastSetting {
  c10::DeviceType device;
  bool enabled = at::autocast::is_autocast_enabled(device);
  at::ScalarType type = at::autocast::get_autocast_dtype(device);

  void apply() const {
    at::autocast::set_autocast_enabled(device, enabled);
    at::autocast::set_autocast_dtype(device, type);
  }
};

std::vector<c10::Device> devices_of(const std::vector<at::Tensor>& tensors) {
  std::vector<c10::Device> devices{c10::kCPU};
  for (const auto& tensor : tensors) {
    if (tensor.device() != devices.back()) devices.push_back(tensor.device());
  }
  return devices;
}

/// A forward that is to be run again.
struct RecomputedCall : torch::CustomClassHolder {
  RecomputedCall(detail::RecomputedForward of, std::vector<at::Tensor> own, const std::vector<at::Tensor>& inputs)
      : forward(std::move(of)), parameters(std::move(own)), count(inputs.size()) {
    for (const auto device : devices_of(inputs)) {
      generators.emplace_back(device);
      autocasts.push_back({device.type()});
    }
  }

  /// As it was called; nothing of that is left behind.
  at::Tensor again(const std::vector<at::Tensor>& inputs) {
    std::vector<at::Tensor> now;
    std::vector<AutocastSetting> outside;
    for (std::size_t i = 0; i < generators.size(); ++i) {
      now.push_back(generators[i].now());
      outside.push_back({autocasts[i].device});
      generators[i].set(generators[i].state());
      autocasts[i].apply();
    }
    const auto restore = [&] {
      for (std::size_t i = 0; i < generators.size(); ++i) {
        generators[i].set(now[i]);
        outside[i].apply();
      }
    };
    try {
      const at::AutoGradMode with_gradients(true);
      auto output = forward(inputs);
      restore();
      return output;
    } catch (...) {
      restore();
      throw;
    }
  }

  detail::RecomputedForward forward;
  std::vector<at::Tensor> parameters;
  std::size_t count;  ///< of inputs
  std::vector<KeptGenerator> generators;
  std::vector<AutocastSetting> autocasts;
};

constexpr const char* kCall = "call";

/// The parameters are inputs of its node, too: so backward of the whole graph brings them their gradients, once, and
/// DistributedDataParallel finds them in the graph.
class Recompute : public torch::autograd::Function<Recompute> {
 public:
  static at::Tensor forward(AutogradContext* context, const c10::intrusive_ptr<RecomputedCall>& call,
                            at::TensorList tensors) {
    context->save_for_backward(tensors.vec());
    context->saved_data[kCall] = c10::IValue::make_capsule(call);
    return call->forward(tensors.slice(0, call->count).vec());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    auto call = c10::static_intrusive_pointer_cast<RecomputedCall>(context->saved_data[kCall].toCapsule());
    const auto saved = context->get_saved_variables();
    variable_list tensors;
    for (std::size_t i = 0; i < call->count; ++i) {
      tensors.push_back(saved[i].detach().set_requires_grad(saved[i].requires_grad()));
    }
    const auto output = call->again(tensors);
    tensors.insert(tensors.end(), call->parameters.begin(), call->parameters.end());
    variable_list wanted;
    for (const auto& tensor : tensors) {
      if (tensor.requires_grad()) wanted.push_back(tensor);
    }
    const auto found = torch::autograd::grad({output}, wanted, {gradients.front()}, /*retain_graph=*/std::nullopt,
                                             /*create_graph=*/false, /*allow_unused=*/true);
    variable_list results{at::Tensor()};  // for `call`
    auto next = found.begin();
    for (const auto& tensor : tensors) results.push_back(tensor.requires_grad() ? *next++ : at::Tensor());
    return results;
  }
};

}  // namespace

at::Tensor detail::recomputed(const torch::nn::Module& module, RecomputedForward forward,
                              std::vector<at::Tensor> inputs) {
  if (!c10::GradMode::is_enabled()) return forward(inputs);
  auto parameters = unique_tensors(module.parameters());
  const auto call = c10::make_intrusive<RecomputedCall>(std::move(forward), parameters, inputs);
  // Each through a node of its own: backward takes younger nodes first, so that gradients come in the order in which
  // they come without this, the last parameter first. DistributedDataParallel makes its buckets by that.
  for (const auto& parameter : parameters) inputs.push_back(parameter.view_as(parameter));
  return Recompute::apply(call, at::TensorList(inputs));  // a vector would not be searched for tensors
}

}  // namespace taas
