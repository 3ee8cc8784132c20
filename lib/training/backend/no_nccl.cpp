#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "taas/error.hpp"
#include "training/backend/backends.hpp"

namespace taas {

int cuda_device_count() { return 0; }

std::string gpu_name(int) { return {}; }

c10::intrusive_ptr<c10d::Backend> make_nccl(const BackendArguments&, int) {
  throw ConfigError("nccl cannot be used: this libtaas was built with a torch that has no CUDA");
}

}  // namespace taas
