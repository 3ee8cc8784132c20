#include "taas/data_parallel.hpp"

#include <ATen/ATen.h>
#include <c10/util/Type.h>

#include <string>

#include "taas/error.hpp"
#include "training/backend/c10_error.hpp"
#include "training/backend/nccl.hpp"
#include "training/replicas/gradient_tie.hpp"
#include "training/replicas/replica.hpp"
#include "training/replicas/replica_threads.hpp"

namespace taas {

std::vector<c10::Device> visible_devices() {
  std::vector<c10::Device> devices;
  for (int i = 0; i < cuda_device_count(); ++i) devices.emplace_back(c10::kCUDA, static_cast<c10::DeviceIndex>(i));
  if (devices.empty()) devices.emplace_back(c10::kCPU);
  return devices;
}

namespace detail {
namespace {

void check_devices(const std::vector<c10::Device>& devices) {
  if (devices.empty()) throw InvalidArgument("DataParallel: the list of devices is empty");
  const int gpus = cuda_device_count();
  for (const auto device : devices) {
    if (!device.is_cuda()) continue;
    if (!device.has_index()) throw InvalidArgument("DataParallel: " + device.str() + " needs a number, as in cuda:0");
    if (device.index() < gpus) continue;
    throw InvalidArgument("DataParallel: there is no " + device.str() + ": this process sees " + std::to_string(gpus) +
                          (gpus == 1 ? " GPU" : " GPUs"));
  }
}

std::shared_ptr<torch::nn::Module> clone_of(const torch::nn::Module& module, c10::Device device) {
  try {
    return module.clone(device);
  } catch (const c10::Error&) {
    throw InvalidArgument("DataParallel: " + module.name() +
                          " cannot be copied: derive it from torch::nn::Cloneable, or give a function that makes one");
  }
}

}  // namespace

std::vector<std::shared_ptr<torch::nn::Module>> make_replicas(
    const std::shared_ptr<torch::nn::Module>& module, const std::vector<c10::Device>& devices,
    const std::function<std::shared_ptr<torch::nn::Module>()>& make) {
  check_devices(devices);
  std::vector<std::shared_ptr<torch::nn::Module>> modules{module};
  while (modules.size() < devices.size()) {
    modules.push_back(make ? make() : clone_of(*module, devices[modules.size()]));
  }
  return modules;
}

class ReplicaSet::Impl {
 public:
  Impl(std::vector<std::shared_ptr<torch::nn::Module>> modules, std::vector<c10::Device> devices)
      : devices_(std::move(devices)),
        module_(modules.front()),
        master_(tensors_of_module(*module_)),
        threads_(devices_) {
    check_place();
    for (std::size_t i = 1; i < modules.size(); ++i) replicas_.emplace_back(modules[i], master_, devices_[i]);
  }

  std::vector<at::Tensor> scatter(const at::Tensor& whole) const {
    if (whole.dim() == 0) {
      throw InvalidArgument("DataParallel: an input is a scalar tensor, which cannot be cut: pass a number instead");
    }
    auto parts = whole.chunk(static_cast<std::int64_t>(devices_.size()));
    constexpr bool kNonBlocking = true;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i] = parts[i].to(devices_[i], parts[i].scalar_type(), kNonBlocking);
    }
    return parts;
  }

  void prepare(std::size_t count) {
    check_place();
    for (std::size_t i = 0; i + 1 < count; ++i) replicas_[i].refresh(*module_, master_);
    if (count < 2) return;
    for (std::size_t p = 0; p < master_.parameters.size(); ++p) {
      std::vector<at::Tensor> copies;
      for (std::size_t i = 0; i + 1 < count; ++i) copies.push_back(replicas_[i].parameters()[p]);
      tie_gradients(master_.parameters[p], copies);
    }
  }

  void run(std::size_t count, const std::function<void(std::size_t)>& call) { threads_.run(count, call); }

  at::Tensor gather(const std::vector<at::Tensor>& parts) const {
    std::vector<at::Tensor> here;
    for (const auto& part : parts) {
      if (!part.defined()) continue;
      const auto moved = part.to(devices_.front());
      here.push_back(moved.dim() == 0 ? moved.unsqueeze(0) : moved);
    }
    if (here.empty()) return {};
    if (here.size() != parts.size()) refuse_outputs();
    return at::cat(here);
  }

 private:
  void check_place() const {
    for (std::size_t i = 0; i < master_.parameters.size(); ++i) {
      if (master_.parameters[i].device() == devices_.front()) continue;
      throw InvalidArgument("DataParallel: parameter " + master_.parameter_names[i] + " is on " +
                            master_.parameters[i].device().str() + ": move the module to " + devices_.front().str() +
                            ", the first device");
    }
  }

  std::vector<c10::Device> devices_;
  std::shared_ptr<torch::nn::Module> module_;
  ModuleTensors master_;
  std::vector<Replica> replicas_;  // all but the master
  ReplicaThreads threads_;
};

ReplicaSet::ReplicaSet(std::vector<std::shared_ptr<torch::nn::Module>> modules, std::vector<c10::Device> devices)
    : impl_(std::make_unique<Impl>(std::move(modules), std::move(devices))) {}
ReplicaSet::~ReplicaSet() = default;

std::vector<at::Tensor> ReplicaSet::scatter(const at::Tensor& whole) const { return impl_->scatter(whole); }
void ReplicaSet::prepare(std::size_t count) { impl_->prepare(count); }
void ReplicaSet::run(std::size_t count, const std::function<void(std::size_t)>& call) { impl_->run(count, call); }
at::Tensor ReplicaSet::gather(const std::vector<at::Tensor>& parts) const { return impl_->gather(parts); }

void ReplicaSet::refuse_chunks(std::size_t first, std::size_t other) {
  throw InvalidArgument("DataParallel: inputs are cut into " + std::to_string(first) + " and into " +
                        std::to_string(other) + " parts: give all of them the same first dimension");
}

void ReplicaSet::refuse_outputs() {
  throw Exception("DataParallel: the replicas returned different numbers of tensors, which cannot be joined");
}

void ReplicaSet::refuse_output_type(std::string_view type) {
  throw InvalidArgument("forward returns a " + c10::demangle(std::string(type).c_str()) +
                        ", in which no tensors can be found: give it a visit_tensors member (taas/output_tensors.hpp)");
}

}  // namespace detail
}  // namespace taas
