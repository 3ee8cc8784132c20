#include "data/memory/cuda_copier.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace taas::data {

/// This thread's calls are made in a context of the program's and disturb no capture of a graph; afterwards all is as
/// it was.
class CudaCopier::Call {
 public:
  Call(const CudaLibrary& cuda, void* context) : cuda_(cuda) {
    cuda_.exchange_capture_mode(&mode_);
    pushed_ = cuda_.push_context(context) == CudaLibrary::kSuccess;
  }
  ~Call() {
    void* ours = nullptr;
    if (pushed_) cuda_.pop_context(&ours);
    cuda_.exchange_capture_mode(&mode_);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  const CudaLibrary& cuda_;
  int mode_ = CudaLibrary::kRelaxedCapture;
  bool pushed_ = false;  ///< not at the end of a program, when CUDA is gone already
};

class CudaCopier::Mark : public CopyMark {
 public:
  Mark(std::shared_ptr<CudaCopier> copier, std::vector<Event> events)
      : copier_(std::move(copier)), events_(std::move(events)) {}
  bool is_passed() override { return events_.empty() || copier_->is_passed(events_); }

 private:
  std::shared_ptr<CudaCopier> copier_;
  std::vector<Event> events_;
};

CudaCopier::CudaCopier(const CudaLibrary& cuda) : cuda_(cuda), process_(::getpid()) {}

CudaCopier::~CudaCopier() {
  if (is_forked()) return;
  for (const auto& [number, device] : devices_) {
    for (auto* event : device.spare_events) cuda_.event_destroy(event);
  }
}

bool CudaCopier::is_forked() const { return ::getpid() != process_; }

/// An error that is not taken from CUDA would be found by the program, behind a call of its own.
int CudaCopier::cleared(int status) const {
  if (status != CudaLibrary::kSuccess) cuda_.get_last_error();
  return status;
}

std::vector<int> CudaCopier::unknown_devices() const {
  std::vector<int> found;
  int count = 0;
  if (cuda_.device_get_count(&count) != CudaLibrary::kSuccess) return found;
  for (int number = 0; number < count; ++number) {
    int device = 0;
    unsigned flags = 0;
    int active = 0;
    const bool told = cuda_.device_get(&device, number) == CudaLibrary::kSuccess &&
                      cuda_.primary_context_get_state(device, &flags, &active) == CudaLibrary::kSuccess;
    if (told && active != 0 && !devices_.contains(number)) found.push_back(number);
  }
  return found;
}

std::vector<int> CudaCopier::new_devices() const {
  if (is_forked()) return {};
  const std::lock_guard lock(mutex_);
  return unknown_devices();
}

void CudaCopier::add_streams(int device, std::vector<void*> streams) {
  const std::lock_guard lock(mutex_);
  int driver_number = 0;
  void* context = nullptr;
  const bool known = cuda_.device_get(&driver_number, device) == CudaLibrary::kSuccess &&
                     cuda_.primary_context_retain(&context, driver_number) == CudaLibrary::kSuccess;
  if (known) devices_[device] = {.context = context, .streams = std::move(streams), .spare_events = {}};
}

bool CudaCopier::is_ready() const {
  const std::lock_guard lock(mutex_);
  return !devices_.empty();
}

std::string CudaCopier::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

bool CudaCopier::pin(std::span<std::byte> memory) {
  if (is_forked()) return false;
  const std::lock_guard lock(mutex_);
  if (devices_.empty() || !problem_.empty()) return false;
  const Call call(cuda_, devices_.begin()->second.context);
  const int status = cleared(cuda_.host_register(memory.data(), memory.size(), CudaLibrary::kPortable));
  if (status == CudaLibrary::kSuccess) return true;
  problem_ = fmt::format("CUDA cannot register {:.1f} MB of memory: {}", static_cast<double>(memory.size()) / 1e6,
                         cuda_.get_error_string(status));
  return false;
}

void CudaCopier::unpin(std::span<std::byte> memory) {
  if (is_forked()) return;
  const std::lock_guard lock(mutex_);
  const Call call(cuda_, devices_.begin()->second.context);
  cleared(cuda_.host_unregister(memory.data()));
}

/// A record would become part of the graph, and a query would end the capture.
bool CudaCopier::is_capturing() const {
  for (const auto& [number, device] : devices_) {
    const Call call(cuda_, device.context);
    for (auto* stream : device.streams) {
      unsigned status = CudaLibrary::kNotCapturing;
      const int told = cleared(cuda_.stream_is_capturing(stream, &status));
      if (told != CudaLibrary::kSuccess || status != CudaLibrary::kNotCapturing) return true;
    }
  }
  return false;
}

std::unique_ptr<CopyMark> CudaCopier::mark() {
  if (is_forked()) return nullptr;
  const std::lock_guard lock(mutex_);
  if (!unknown_devices().empty() || is_capturing()) return nullptr;
  std::vector<Event> events;
  for (auto& [number, device] : devices_) {
    if (record_busy(number, device, events)) continue;
    for (const auto& event : events) take_back(event);
    return nullptr;
  }
  return std::make_unique<Mark>(shared_from_this(), std::move(events));
}

/// What a stream that is idle was asked for is done.
bool CudaCopier::record_busy(int number, Device& device, std::vector<Event>& events) {
  const Call call(cuda_, device.context);
  for (auto* stream : device.streams) {
    if (cleared(cuda_.stream_query(stream)) != CudaLibrary::kNotReady) continue;
    void* event = take_event(device);
    if (!event) return false;
    events.push_back({.device = number, .event = event});
    if (cleared(cuda_.event_record(event, stream)) != CudaLibrary::kSuccess) return false;
  }
  return true;
}

void* CudaCopier::take_event(Device& device) {
  void* event = nullptr;
  if (device.spare_events.empty()) {
    return cleared(cuda_.event_create(&event, CudaLibrary::kNoTiming)) == CudaLibrary::kSuccess ? event : nullptr;
  }
  event = device.spare_events.back();
  device.spare_events.pop_back();
  return event;
}

void CudaCopier::take_back(const Event& event) { devices_[event.device].spare_events.push_back(event.event); }

/// Any other answer than "not ready" is the end of all copies: they are done, or CUDA has failed in this process.
bool CudaCopier::is_passed(std::vector<Event>& events) {
  if (is_forked()) return true;
  const std::lock_guard lock(mutex_);
  while (!events.empty()) {
    const Call call(cuda_, devices_.at(events.back().device).context);
    if (cleared(cuda_.event_query(events.back().event)) == CudaLibrary::kNotReady) return false;
    take_back(events.back());
    events.pop_back();
  }
  return true;
}

}  // namespace taas::data
