#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "dist/nccl.hpp"
#include "taas/error.hpp"

namespace taas {

int cuda_device_count() { return 0; }

c10::intrusive_ptr<c10d::Backend> make_nccl(const BackendArguments&) {
  throw ConfigError("nccl cannot be used: this libtaas was built with a torch that has no CUDA");
}

}  // namespace taas
