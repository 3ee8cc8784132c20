#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "data/memory/copier.hpp"
#include "data/memory/cuda_library.hpp"

namespace taas::data {

/// The GPUs that the program uses. CUDA does not tell which streams read a piece of memory, so a mark is an event on
/// each stream that torch has and that has work left. Streams come from torch, for each device that the program has
/// begun to use. Touches no other device, and initialises none. Does nothing in a forked child.
class CudaCopier : public Copier, public std::enable_shared_from_this<CudaCopier> {
 public:
  explicit CudaCopier(const CudaLibrary& cuda);
  ~CudaCopier() override;
  CudaCopier(const CudaCopier&) = delete;
  CudaCopier& operator=(const CudaCopier&) = delete;

  /// Devices that the program uses, and whose streams are not known. While there are any, nothing can be marked.
  [[nodiscard]] std::vector<int> new_devices() const;
  /// All streams on which the program may copy on this device, as cudaStream_t.
  void add_streams(int device, std::vector<void*> streams);
  /// Whether there is a device to pin memory for.
  [[nodiscard]] bool is_ready() const;
  /// Why memory is not pinned; empty: it is.
  [[nodiscard]] std::string problem() const;

  bool pin(std::span<std::byte> memory) override;
  void unpin(std::span<std::byte> memory) override;
  std::unique_ptr<CopyMark> mark() override;

 private:
  class Mark;
  class Call;

  struct Device {
    void* context = nullptr;  ///< the primary one, kept to the end
    std::vector<void*> streams;
    std::vector<void*> spare_events;
  };
  struct Event {
    int device = 0;
    void* event = nullptr;
  };

  [[nodiscard]] bool is_forked() const;
  [[nodiscard]] std::vector<int> unknown_devices() const;
  [[nodiscard]] bool is_capturing() const;
  /// False: that cannot be told now.
  bool record_busy(int number, Device& device, std::vector<Event>& events);
  void* take_event(Device& device);
  bool is_passed(std::vector<Event>& events);
  void take_back(const Event& event);
  int cleared(int status) const;

  const CudaLibrary cuda_;
  const pid_t process_;
  mutable std::mutex mutex_;
  std::map<int, Device> devices_;
  std::string problem_;
};

}  // namespace taas::data
