#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace taas::data {

/// What is used of CUDA, from the libraries that the program has loaded itself (torch's own). Nothing is linked, and
/// nothing is loaded: where there is no CUDA, nothing changes. Names, types and numbers are those of cuda_runtime_api.h
/// and cuda.h, which have been the same since CUDA 10.
struct CudaLibrary {
  static constexpr int kSuccess = 0;
  static constexpr int kNotReady = 600;
  static constexpr unsigned kPortable = 1;   ///< pinned for all devices
  static constexpr unsigned kNoTiming = 2;   ///< an event that only says whether it has been passed
  static constexpr int kRelaxedCapture = 2;  ///< calls of this thread disturb no capture of another
  static constexpr unsigned kNotCapturing = 0;

  int (*host_register)(void* memory, std::size_t bytes, unsigned flags) = nullptr;
  int (*host_unregister)(void* memory) = nullptr;
  int (*stream_is_capturing)(void* stream, unsigned* status) = nullptr;
  int (*stream_query)(void* stream) = nullptr;
  int (*event_create)(void** event, unsigned flags) = nullptr;
  int (*event_record)(void* event, void* stream) = nullptr;
  int (*event_query)(void* event) = nullptr;
  int (*event_destroy)(void* event) = nullptr;
  int (*get_last_error)() = nullptr;
  const char* (*get_error_string)(int error) = nullptr;
  int (*exchange_capture_mode)(int* mode) = nullptr;

  // Of the driver. A context is pushed and popped, since cudaSetDevice would initialise the device that it goes back
  // to.
  int (*device_get_count)(int* count) = nullptr;
  int (*device_get)(int* device, int ordinal) = nullptr;
  int (*primary_context_get_state)(int device, unsigned* flags, int* active) = nullptr;
  int (*primary_context_retain)(void** context, int device) = nullptr;
  int (*push_context)(void* context) = nullptr;
  int (*pop_context)(void** context) = nullptr;

  /// `runtime` and `driver` are how the names of the two files begin. An error says what is missing.
  static Result<CudaLibrary> of_program(std::string_view runtime = "libcudart", std::string_view driver = "libcuda.so");
};

}  // namespace taas::data
