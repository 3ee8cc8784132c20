// Stands in for libcuda.so.1: FAKE_CUDA_LOG gets "pid function" for each call. The real libcudart gets as far as
// cuInit() with it; then it asks for tables of functions that are in no header, and does not find them.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kNotFound = 500;  // CUDA_ERROR_NOT_FOUND

int noted(const char* function, int result) {
  const char* path = std::getenv("FAKE_CUDA_LOG");
  std::FILE* log = path == nullptr ? nullptr : std::fopen(path, "a");
  if (log == nullptr) return result;
  std::fprintf(log, "%d %s\n", ::getpid(), function);
  std::fclose(log);
  return result;
}

int no_table(const void**, const void*) { return noted("cuGetExportTable", kNotFound); }

}  // namespace

extern "C" {

int cuInit(unsigned) { return noted("cuInit", 0); }

int cuDriverGetVersion(int* version) {
  *version = 13020;
  return noted("cuDriverGetVersion", 0);
}

int cuGetProcAddress_v2(const char* name, void** function, int, unsigned long long, int*) {
  *function = nullptr;
  if (std::strcmp(name, "cuInit") == 0) *function = reinterpret_cast<void*>(&cuInit);
  if (std::strcmp(name, "cuDriverGetVersion") == 0) *function = reinterpret_cast<void*>(&cuDriverGetVersion);
  if (std::strcmp(name, "cuGetProcAddress") == 0) *function = reinterpret_cast<void*>(&cuGetProcAddress_v2);
  if (*function == nullptr) *function = reinterpret_cast<void*>(&no_table);
  return 0;
}
}
