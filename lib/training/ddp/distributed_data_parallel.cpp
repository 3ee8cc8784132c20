#include "taas/distributed_data_parallel.hpp"

#include <c10/util/Type.h>

#include <string>
#include <utility>

#include "taas/error.hpp"
#include "training/ddp/wrapper_impl.hpp"

namespace taas::detail {

DataParallelCore::DataParallelCore(std::shared_ptr<torch::nn::Module> module, ProcessGroup group,
                                   const DistributedDataParallelOptions& options)
    : impl_(std::make_unique<Impl>(*this, std::move(module), std::move(group), options)) {}
DataParallelCore::~DataParallelCore() = default;

void DataParallelCore::before_forward() { impl_->before_forward(); }
bool DataParallelCore::changes_inputs() const { return impl_->changes_inputs(); }
void DataParallelCore::change_input(at::Tensor& input) const { impl_->change_input(input); }
bool DataParallelCore::wants_outputs() const { return impl_->wants_outputs(); }
void DataParallelCore::after_forward(const std::vector<at::Tensor*>& outputs) { impl_->after_forward(outputs); }
void DataParallelCore::zero_grad() { impl_->zero_grad(); }
bool DataParallelCore::set_gradient_sync(bool sync) { return impl_->set_gradient_sync(sync); }

void DataParallelCore::register_comm_hook(const std::shared_ptr<CommHook>& hook) { impl_->register_comm_hook(hook); }
void DataParallelCore::register_comm_hook(BuiltinCommHook hook) { impl_->register_once(hook); }
void DataParallelCore::register_buffer_comm_hook(BufferHook hook, BufferHookLocation location) {
  impl_->register_buffer_hook(std::move(hook), location);
}

void DataParallelCore::backward(const at::Tensor& loss, const at::Tensor& gradient, bool retain_graph,
                                bool create_graph) {
  impl_->backward(loss, gradient, retain_graph, create_graph);
}

void DataParallelCore::set_static_graph() { impl_->set_static_graph(); }
void DataParallelCore::set_sink_clone(bool clone) { impl_->set_sink_clone(clone); }
void DataParallelCore::update_process_group(const ProcessGroup& group) { impl_->update_process_group(group); }

void DataParallelCore::remove_autograd_hooks() { impl_->remove_autograd_hooks(); }
void DataParallelCore::check_reducer_finalized() {
  if (auto* reducer = impl_->reducer()) reducer->check_finalized();
}

void DataParallelCore::require_manual_backward_finalization(bool required) {
  impl_->require_manual_finalization(required);
}
bool DataParallelCore::should_finalize_after_backward() const { return impl_->should_finalize_after_backward(); }
void DataParallelCore::finalize_backward() { impl_->finalize_backward(); }

void DataParallelCore::set_runtime_logging_sample_rate(int rate) {
  if (rate < 1) throw InvalidArgument("the sample rate must be 1 or above, not " + std::to_string(rate));
  if (auto* reducer = impl_->reducer()) reducer->measure_every(rate);
}

DataParallelLog DataParallelCore::logging_data() const {
  const auto* reducer = impl_->reducer();
  return reducer ? DataParallelLog{reducer->logged_texts(), reducer->logged_numbers()} : DataParallelLog{};
}

class DataParallelCore::ShadowHook : public JoinHook {
 public:
  explicit ShadowHook(Impl& impl) : impl_(impl) {}
  void main_hook() override { impl_.shadow_iteration(); }
  bool keep_gradients() override {
    impl_.keep_gradients();
    return true;
  }
  void post_hook(bool is_last_joiner) override { impl_.become_model_of_last(is_last_joiner); }

 private:
  Impl& impl_;
};

std::unique_ptr<JoinHook> DataParallelCore::join_hook(const JoinOptions& options) {
  impl_->start_join(options);
  return std::make_unique<ShadowHook>(*impl_);
}
const ProcessGroup& DataParallelCore::join_process_group() const { return impl_->group(); }
void DataParallelCore::leave_join() { impl_->leave_join(); }

void DataParallelCore::refuse_output_type(std::string_view type) {
  throw InvalidArgument("forward returns a " + c10::demangle(std::string(type).c_str()) +
                        ", in which no tensors can be found: give it a visit_tensors member (taas/output_tensors.hpp)");
}

}  // namespace taas::detail
