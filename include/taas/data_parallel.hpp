#pragma once

#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "taas/output_tensors.hpp"

namespace taas {

/// Where this process can compute: all GPUs that it sees, or the CPU once.
std::vector<c10::Device> visible_devices();

namespace detail {

/// The replicas of a module and their threads. It knows only torch::nn::Module.
class ReplicaSet {
 public:
  /// `modules` are of one kind. The first one is the master, on the first device; the others become its copies.
  ReplicaSet(std::vector<std::shared_ptr<torch::nn::Module>> modules, std::vector<c10::Device> devices);
  ~ReplicaSet();

  /// Replaces `whole` by the part of it that belongs to each device; returns the parts, [number of chunks].
  std::vector<at::Tensor> scatter(const at::Tensor& whole) const;
  /// Brings the first `count` replicas up to the master's state and ties their gradients to the master's.
  void prepare(std::size_t count);
  /// Runs call(i) for i < count at the same time, each in the thread of its device, and returns when all have ended.
  void run(std::size_t count, const std::function<void(std::size_t)>& call);
  /// Joins what replicas returned at one place, along dimension 0 on the first device. Scalars become a vector.
  at::Tensor gather(const std::vector<at::Tensor>& parts) const;

  [[noreturn]] static void refuse_chunks(std::size_t first, std::size_t other);
  [[noreturn]] static void refuse_outputs();
  [[noreturn]] static void refuse_output_type(std::string_view type);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Copies of `module`, the module itself being the first. Without `make` the module has to be a torch::nn::Cloneable.
std::vector<std::shared_ptr<torch::nn::Module>> make_replicas(
    const std::shared_ptr<torch::nn::Module>& module, const std::vector<c10::Device>& devices,
    const std::function<std::shared_ptr<torch::nn::Module>()>& make);

}  // namespace detail

/// Trains one module on several devices of one process, with a thread for each device. A batch is cut along dimension 0
/// as torch.chunk does, each device computes its part on a copy of the module, and the outputs are joined on the first
/// device. backward() leaves in the parameters' grad of the module that was given the sum over all devices, which is
/// what the module alone would have computed.
///
///     network->to(taas::visible_devices().front());
///     taas::DataParallel model(network);
///     torch::nll_loss(model(images), labels).backward();
///     optimizer.step();  // made from network->parameters()
///
/// The copies and their threads are kept between steps; each forward writes the module's weights and buffers to them.
/// The copy on the first device is the module itself, so that its buffers are the ones that are kept. A device may be
/// named several times, also the CPU: a batch of 30 on four devices is cut into 8, 8, 8 and 6 on any machine.
///
/// All tensors in the inputs are cut, wherever OutputTensors finds them; other arguments are copied. A batch of fewer
/// examples than devices uses fewer devices. Options of the module that are neither parameters, buffers nor train() are
/// those of the time of construction.
///
/// Throws InvalidArgument when the module is not on the first device, cannot be copied, or when inputs are cut into
/// different numbers of parts; Exception with the replica's device when its forward has thrown.
template <class M>
class DataParallel {
 public:
  using Make = std::function<std::shared_ptr<M>()>;

  /// `make` makes a module like the one given. It is only needed where the module is not a torch::nn::Cloneable.
  explicit DataParallel(std::shared_ptr<M> module, std::vector<c10::Device> devices = visible_devices(),
                        const Make& make = nullptr)
      : module_(std::move(module)), devices_(std::move(devices)) {
    auto modules = detail::make_replicas(module_, devices_, make);
    for (const auto& replica : modules) replicas_.push_back(std::dynamic_pointer_cast<M>(replica));
    set_ = std::make_unique<detail::ReplicaSet>(std::move(modules), devices_);
  }

  explicit DataParallel(const torch::nn::ModuleHolder<M>& module, std::vector<c10::Device> devices = visible_devices(),
                        const Make& make = nullptr)
      : DataParallel(module.ptr(), std::move(devices), make) {}

  template <class... Inputs>
  auto forward(Inputs&&... inputs) {
    using Arguments = std::tuple<std::decay_t<Inputs>...>;
    using Output = std::decay_t<decltype(module_->forward(std::declval<std::decay_t<Inputs>&>()...))>;
    static_assert(!std::is_void_v<Output>, "forward has to return something");
    if (devices_.size() == 1) return Output(module_->forward(std::forward<Inputs>(inputs)...));
    auto parts = scatter(Arguments(std::forward<Inputs>(inputs)...));
    set_->prepare(parts.size());
    std::vector<std::optional<Output>> outputs(parts.size());
    set_->run(parts.size(), [&](std::size_t i) {
      outputs[i].emplace(std::apply([&](auto&... arguments) { return replicas_[i]->forward(arguments...); }, parts[i]));
    });
    return gather(outputs);
  }

  template <class... Inputs>
  auto operator()(Inputs&&... inputs) {
    return forward(std::forward<Inputs>(inputs)...);
  }

  M& module() { return *module_; }
  const M& module() const { return *module_; }
  const std::shared_ptr<M>& module_ptr() const { return module_; }
  const std::vector<c10::Device>& devices() const { return devices_; }

 private:
  template <class Values>
  static std::vector<at::Tensor*> find_tensors(Values& values) {
    std::vector<at::Tensor*> found;
    OutputTensors<Values>::visit(values, [&](at::Tensor& tensor) { found.push_back(&tensor); });
    return found;
  }

  /// A set of arguments for each device that gets some.
  template <class Arguments>
  std::vector<Arguments> scatter(Arguments whole) const {
    std::vector<std::vector<at::Tensor>> chunks;
    for (auto* tensor : find_tensors(whole)) {
      chunks.push_back(tensor->defined() ? set_->scatter(*tensor) : std::vector<at::Tensor>());
    }
    std::size_t count = 0;
    for (const auto& chunk : chunks) {
      if (chunk.empty()) continue;
      if (count != 0 && chunk.size() != count) detail::ReplicaSet::refuse_chunks(count, chunk.size());
      count = chunk.size();
    }
    std::vector<Arguments> parts(count == 0 ? 1 : count, whole);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto places = find_tensors(parts[i]);
      for (std::size_t place = 0; place < places.size(); ++place) {
        if (!chunks[place].empty()) *places[place] = chunks[place][i];
      }
    }
    return parts;
  }

  template <class Output>
  Output gather(std::vector<std::optional<Output>>& outputs) const {
    if constexpr (OutputTensors<Output>::kKnown) {
      Output result = *outputs.front();
      const auto places = find_tensors(result);
      std::vector<std::vector<at::Tensor*>> found;
      for (auto& output : outputs) {
        found.push_back(find_tensors(*output));
        if (found.back().size() != places.size()) detail::ReplicaSet::refuse_outputs();
      }
      for (std::size_t place = 0; place < places.size(); ++place) {
        std::vector<at::Tensor> parts;
        for (const auto& tensors : found) parts.push_back(*tensors[place]);
        *places[place] = set_->gather(parts);
      }
      return result;
    } else {
      detail::ReplicaSet::refuse_output_type(typeid(Output).name());
    }
  }

  std::shared_ptr<M> module_;
  std::vector<c10::Device> devices_;
  std::vector<std::shared_ptr<M>> replicas_;
  std::unique_ptr<detail::ReplicaSet> set_;
};

template <class Holder, class... More>
requires requires { typename Holder::ContainedType; }
DataParallel(const Holder&, More&&...)->DataParallel<typename Holder::ContainedType>;

}  // namespace taas
