#include "fake_cuda.hpp"

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace {

constexpr int kSuccess = 0;
constexpr int kInvalid = 1;
constexpr int kNotReady = 600;
constexpr int kDevices = 2;

char fake_contexts[kDevices];

struct FakeStream {
  std::deque<std::function<void()>> work;
  bool captures = false;
};

struct FakeEvent {
  bool passed = true;
};

struct Fake {
  std::mutex mutex;
  std::set<int> used_devices;
  std::map<void*, FakeStream> streams;
  std::map<const char*, std::size_t> registered;
  int refusal = kSuccess;
  int mistakes = 0;
};

Fake& fake() {
  static auto* one = new Fake;  // what is unregistered at the program's end finds it
  return *one;
}

thread_local int last_error = kSuccess;
thread_local std::vector<int> contexts;  // of devices: the current one is the last
thread_local int capture_mode = 0;

int answer(int status) {
  if (status != kSuccess) last_error = status;
  return status;
}

/// Counted, and answered as CUDA does.
int mistake() {
  ++fake().mistakes;
  return answer(kInvalid);
}

/// What may not be called in the middle of another thread's capture, unless this thread is relaxed about it.
void expect_relaxed() {
  if (capture_mode != 2) ++fake().mistakes;
  if (contexts.empty() || !fake().used_devices.contains(contexts.back())) ++fake().mistakes;
}

using Locked = std::lock_guard<std::mutex>;

}  // namespace

extern "C" {

void fake_cuda_reset() {
  const Locked lock(fake().mutex);
  fake().used_devices.clear();
  fake().streams.clear();
  fake().refusal = kSuccess;
  fake().mistakes = 0;
  last_error = kSuccess;
}

void fake_cuda_use_device(int device) {
  const Locked lock(fake().mutex);
  fake().used_devices.insert(device);
}

void fake_cuda_copy(void* stream, void* to, const void* from, std::size_t bytes) {
  const Locked lock(fake().mutex);
  fake().streams[stream].work.emplace_back([=] { std::memcpy(to, from, bytes); });
}

void fake_cuda_run() {
  const Locked lock(fake().mutex);
  for (auto& [handle, stream] : fake().streams) {
    for (; !stream.work.empty(); stream.work.pop_front()) stream.work.front()();
  }
}

void fake_cuda_capture(void* stream, int begins) {
  const Locked lock(fake().mutex);
  fake().streams[stream].captures = begins != 0;
}

void fake_cuda_refuse(int status) {
  const Locked lock(fake().mutex);
  fake().refusal = status;
}

int fake_cuda_is_registered(const void* memory, std::size_t bytes) {
  const Locked lock(fake().mutex);
  const auto* begin = static_cast<const char*>(memory);
  for (const auto& [from, size] : fake().registered) {
    if (begin >= from && begin + bytes <= from + size) return 1;
  }
  return 0;
}

int fake_cuda_registrations() {
  const Locked lock(fake().mutex);
  return static_cast<int>(fake().registered.size());
}

/// An error that nobody has taken, or another context, would surprise the program.
int fake_cuda_mistakes() {
  const Locked lock(fake().mutex);
  return fake().mistakes + (last_error == kSuccess ? 0 : 1) + static_cast<int>(contexts.size());
}

int cudaHostRegister(void* memory, std::size_t bytes, unsigned) {
  const Locked lock(fake().mutex);
  expect_relaxed();
  if (fake().refusal != kSuccess) return answer(fake().refusal);
  return fake().registered.emplace(static_cast<const char*>(memory), bytes).second ? kSuccess : mistake();
}

int cudaHostUnregister(void* memory) {
  const Locked lock(fake().mutex);
  return fake().registered.erase(static_cast<const char*>(memory)) == 1 ? kSuccess : mistake();
}

int cudaThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return kSuccess;
}

int cudaStreamIsCapturing(void* stream, unsigned* status) {
  const Locked lock(fake().mutex);
  *status = fake().streams[stream].captures ? 1 : 0;
  return kSuccess;
}

int cudaStreamQuery(void* stream) {
  const Locked lock(fake().mutex);
  expect_relaxed();
  const auto& asked = fake().streams[stream];
  if (asked.captures) return mistake();
  return asked.work.empty() ? kSuccess : answer(kNotReady);
}

int cudaEventCreateWithFlags(void** event, unsigned) {
  *event = new FakeEvent;
  return kSuccess;
}

int cudaEventRecord(void* event, void* stream) {
  const Locked lock(fake().mutex);
  expect_relaxed();
  auto& asked = fake().streams[stream];
  if (asked.captures) return mistake();
  auto* recorded = static_cast<FakeEvent*>(event);
  recorded->passed = false;
  asked.work.emplace_back([recorded] { recorded->passed = true; });
  return kSuccess;
}

int cudaEventQuery(void* event) {
  const Locked lock(fake().mutex);
  expect_relaxed();
  return static_cast<FakeEvent*>(event)->passed ? kSuccess : answer(kNotReady);
}

int cudaEventDestroy(void* event) {
  delete static_cast<FakeEvent*>(event);
  return kSuccess;
}

int cudaGetLastError() { return std::exchange(last_error, kSuccess); }
const char* cudaGetErrorString(int) { return "a fake error"; }

int cuDeviceGetCount(int* count) {
  *count = kDevices;
  return kSuccess;
}

int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return kSuccess;
}

int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  const Locked lock(fake().mutex);
  *flags = 0;
  *active = fake().used_devices.contains(device) ? 1 : 0;
  return kSuccess;
}

/// A context is the address of a byte for its device.
int cuDevicePrimaryCtxRetain(void** context, int device) {
  const Locked lock(fake().mutex);
  if (!fake().used_devices.contains(device)) return mistake();
  *context = &fake_contexts[device];
  return kSuccess;
}

int cuCtxPushCurrent_v2(void* context) {
  contexts.push_back(static_cast<int>(static_cast<char*>(context) - fake_contexts));
  return kSuccess;
}

int cuCtxPopCurrent_v2(void** context) {
  *context = fake_contexts + contexts.back();
  contexts.pop_back();
  return kSuccess;
}
}
