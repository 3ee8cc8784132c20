#include "taas/graphed_step.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

#include "taas/error.hpp"
#include "training/backend/c10_error.hpp"
#include "training/backend/nccl.hpp"
#include "training/backend/step_graph.hpp"
#include "training/graph/recording.hpp"

namespace taas {
namespace {

using Tensors = GraphedStep::Tensors;

void refuse_default_stream(c10::Device device) {
  const c10::impl::VirtualGuardImpl gpu(device.type());
  if (gpu.getStream(device) != gpu.getDefaultStream(device)) return;
  throw InvalidArgument("CUDA cannot record the default stream: make a taas::OwnStream before the model is wrapped");
}

std::unique_ptr<detail::StepGraph> graph_for(const ProcessGroup& group, const GraphedStepOptions& options) {
  if (!options.enabled || !GraphedStep::is_possible(group)) return nullptr;
  refuse_default_stream(group.device());
  return make_step_graph(group.device().index());
}

/// "[64, 1, 28, 28] Float, [64] Long".
std::string text_of(const Tensors& inputs) {
  std::ostringstream text;
  for (const auto& input : inputs) {
    if (text.tellp() > 0) text << ", ";
    text << input.sizes() << ' ' << input.scalar_type();
  }
  return text.str();
}

bool same_kind(const Tensors& some, const Tensors& others) {
  return std::ranges::equal(some, others, [](const at::Tensor& one, const at::Tensor& other) {
    return one.sizes() == other.sizes() && one.scalar_type() == other.scalar_type() && one.device() == other.device();
  });
}

Tensors empty_like_all(const Tensors& tensors) {
  Tensors empty;
  for (const auto& tensor : tensors) empty.push_back(at::empty_like(tensor));
  return empty;
}

}  // namespace

class GraphedStep::Impl {
 public:
  Impl(std::unique_ptr<detail::StepGraph> graph, Step step, std::vector<RecordableOptimizer*> optimizers,
       const GraphedStepOptions& options)
      : graph_(std::move(graph)), step_(std::move(step)), optimizers_(std::move(optimizers)), options_(options) {
    if (options.warmup < 1) throw InvalidArgument("warmup must be 1 or more, not " + std::to_string(options.warmup));
    if (!graph_) return;
    for (const auto* optimizer : optimizers_) {
      if (optimizer->kernels().capturable) continue;
      throw InvalidArgument("an optimizer of a step that is recorded has to be made with {.capturable = true}");
    }
  }

  at::Tensor run(const Tensors& inputs) {
    replayed_ = graph_ && is_to_be_replayed(inputs);
    if (!replayed_) return step_(inputs);
    take_in(inputs);
    if (!recorded_ || !still_recorded()) record();
    replay();
    return result_;
  }

  [[nodiscard]] bool uses_graph() const { return graph_ != nullptr; }
  [[nodiscard]] bool replayed() const { return replayed_; }

 private:
  /// Inputs of one kind, warmup + 1 times in a row, decide on the kind that is recorded: a training may go on with the
  /// last, smaller batch of an epoch.
  bool is_to_be_replayed(const Tensors& inputs) {
    if (calls_ == 0 || !same_kind(inputs, inputs_)) {
      if (calls_ > 0 && !options_.eager_for_others) {
        throw InvalidArgument("this step is recorded for " + text_of(inputs_) + ", not " + text_of(inputs));
      }
      if (calls_ > options_.warmup) return false;
      inputs_ = empty_like_all(inputs);
      calls_ = 0;
    }
    if (calls_ <= options_.warmup) ++calls_;
    return calls_ > options_.warmup;
  }

  bool still_recorded() const {
    return std::ranges::all_of(optimizers_, [](auto* optimizer) { return optimizer->still_recorded(); });
  }

  void record() {
    recorded_ = false;
    for (auto* optimizer : optimizers_) optimizer->before_recording();
    try {
      graph_->record([this] {
        RecordingScope recording;
        result_ = step_(inputs_).detach();
      });
    } catch (const Exception&) {
      throw;
    } catch (const std::exception& error) {
      throw Exception("the step cannot be recorded: " + one_line(error) +
                      "; it must not read results on the CPU, copy between CPU and GPU, or seed a generator");
    }
    recorded_ = true;
  }

  void take_in(const Tensors& inputs) {
    constexpr bool kNonBlocking = true;
    at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs_[i].copy_(inputs[i], kNonBlocking);
  }

  void replay() {
    for (auto* optimizer : optimizers_) optimizer->before_replay();
    graph_->replay();
  }

  std::unique_ptr<detail::StepGraph> graph_;  ///< null: every step is run as it is
  Step step_;
  std::vector<RecordableOptimizer*> optimizers_;
  GraphedStepOptions options_;
  Tensors inputs_;     ///< what the recorded step reads
  at::Tensor result_;  ///< what it writes
  int calls_ = 0;      ///< with inputs of that kind, up to the one that is recorded
  bool recorded_ = false;
  bool replayed_ = false;
};

GraphedStep::GraphedStep(const ProcessGroup& group, Step step, std::vector<RecordableOptimizer*> optimizers,
                         const GraphedStepOptions& options)
    : GraphedStep(graph_for(group, options), std::move(step), std::move(optimizers), options) {}

GraphedStep::GraphedStep(std::unique_ptr<detail::StepGraph> graph, Step step,
                         std::vector<RecordableOptimizer*> optimizers, const GraphedStepOptions& options)
    : impl_(std::make_unique<Impl>(std::move(graph), std::move(step), std::move(optimizers), options)) {}

GraphedStep::~GraphedStep() = default;

/// Nothing of the step may go through the CPU, as gloo's collectives do.
bool GraphedStep::is_possible(const ProcessGroup& group) {
  return group.device().is_cuda() && group.backend() != "gloo";
}

at::Tensor GraphedStep::operator()(const Tensors& inputs) { return impl_->run(inputs); }
bool GraphedStep::uses_graph() const { return impl_->uses_graph(); }
bool GraphedStep::replayed() const { return impl_->replayed(); }

}  // namespace taas
