#include "data/memory/cuda_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <filesystem>

namespace taas::data {

namespace {

struct LoadedSearch {
  std::string_view prefix;
  std::string path;
};

int look_at_library(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<LoadedSearch*>(data);
  const std::filesystem::path path(info->dlpi_name ? info->dlpi_name : "");
  if (!path.filename().string().starts_with(search.prefix)) return 0;
  search.path = path.string();
  return 1;
}

/// Null: the program has not loaded it. It stays loaded as long as the program has it.
void* find_loaded(std::string_view prefix) {
  LoadedSearch search{.prefix = prefix, .path = {}};
  ::dl_iterate_phdr(look_at_library, &search);
  return search.path.empty() ? nullptr : ::dlopen(search.path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
}

/// Remembers the first name that is missing.
class SymbolFinder {
 public:
  explicit SymbolFinder(void* library) : library_(library) {}

  template <class Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(library_, name));
    if (!function && missing_.empty()) missing_ = name;
  }
  [[nodiscard]] const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

std::string find_runtime(CudaLibrary& cuda, void* library) {
  SymbolFinder symbols(library);
  symbols.find(cuda.host_register, "cudaHostRegister");
  symbols.find(cuda.host_unregister, "cudaHostUnregister");
  symbols.find(cuda.stream_is_capturing, "cudaStreamIsCapturing");
  symbols.find(cuda.stream_query, "cudaStreamQuery");
  symbols.find(cuda.event_create, "cudaEventCreateWithFlags");
  symbols.find(cuda.event_record, "cudaEventRecord");
  symbols.find(cuda.event_query, "cudaEventQuery");
  symbols.find(cuda.event_destroy, "cudaEventDestroy");
  symbols.find(cuda.get_last_error, "cudaGetLastError");
  symbols.find(cuda.get_error_string, "cudaGetErrorString");
  symbols.find(cuda.exchange_capture_mode, "cudaThreadExchangeStreamCaptureMode");
  return symbols.missing();
}

std::string find_driver(CudaLibrary& cuda, void* library) {
  SymbolFinder symbols(library);
  symbols.find(cuda.device_get_count, "cuDeviceGetCount");
  symbols.find(cuda.device_get, "cuDeviceGet");
  symbols.find(cuda.primary_context_get_state, "cuDevicePrimaryCtxGetState");
  symbols.find(cuda.primary_context_retain, "cuDevicePrimaryCtxRetain");
  symbols.find(cuda.push_context, "cuCtxPushCurrent_v2");
  symbols.find(cuda.pop_context, "cuCtxPopCurrent_v2");
  return symbols.missing();
}

}  // namespace

Result<CudaLibrary> CudaLibrary::of_program(std::string_view runtime, std::string_view driver) {
  CudaLibrary cuda;
  void* runtime_library = find_loaded(runtime);
  if (!runtime_library) return unavailable_error(fmt::format("the program has not loaded {}", runtime));
  void* driver_library = find_loaded(driver);
  if (!driver_library) return unavailable_error(fmt::format("the program has not loaded {}", driver));
  for (const auto& missing : {find_runtime(cuda, runtime_library), find_driver(cuda, driver_library)}) {
    if (!missing.empty()) return unavailable_error(fmt::format("CUDA has no {}", missing));
  }
  return cuda;
}

}  // namespace taas::data
