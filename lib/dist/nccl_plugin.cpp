#include "dist/nccl_plugin.hpp"

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

extern "C" void taas_make_nccl(const taas::BackendArguments& arguments, c10::intrusive_ptr<c10d::Backend>& result) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = arguments.timeout;
  result = c10::make_intrusive<c10d::ProcessGroupNCCL>(arguments.store, arguments.rank, arguments.world_size, options);
}
