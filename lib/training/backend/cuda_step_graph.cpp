// Part of the plugin: at::cuda::CUDAGraph is in libtorch_cuda.
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

#include <exception>
#include <memory>

#include "training/backend/nccl_plugin.hpp"
#include "training/backend/step_graph.hpp"

namespace {

class CudaStepGraph : public taas::detail::StepGraph {
 public:
  explicit CudaStepGraph(int gpu) : gpu_(static_cast<c10::DeviceIndex>(gpu)) {}

  /// CUDA checks the recording thread alone: NCCL's watchdog may go on to ask for the end of earlier collectives. These
  /// are through before, and so is what the former graph's memory is used for.
  void record(const std::function<void()>& work) override {
    c10::cuda::CUDAGuard guard(gpu_);
    c10::cuda::device_synchronize();
    graph_.reset();
    c10::cuda::CUDACachingAllocator::emptyCache();
    auto graph = std::make_unique<at::cuda::CUDAGraph>();
    graph->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      end_in_vain(*graph);
      throw;
    }
    graph->capture_end();
    graph_ = std::move(graph);
  }

  void replay() override {
    c10::cuda::CUDAGuard guard(gpu_);
    graph_->replay();
  }

 private:
  /// What went wrong while recording is the error that counts, not that there is no graph.
  static void end_in_vain(at::cuda::CUDAGraph& graph) {
    try {
      graph.capture_end();
    } catch (const std::exception&) {
    }
  }

  c10::DeviceIndex gpu_;
  std::unique_ptr<at::cuda::CUDAGraph> graph_;
};

}  // namespace

extern "C" void taas_make_step_graph(int gpu, std::unique_ptr<taas::detail::StepGraph>& result) {
  result = std::make_unique<CudaStepGraph>(gpu);
}
