#pragma once

#include <mutex>
#include <vector>

namespace taas::storage {

/// Whether the process runs and is not on its way out. A dying process is told from a living one before the kernel
/// closes its files, so a file that was closed when this is still true was closed on purpose.
bool process_is_alive(int pid);

/// The processes of a generation, for the thread that wants to know whether a file was closed on purpose.
class WritingProcesses {
 public:
  /// A generation begins, without any process.
  void clear();
  void add(int pid);
  /// One of them has ended, well or not.
  void one_ended();
  /// None of them has ended or is on its way out.
  [[nodiscard]] bool all_alive() const;

 private:
  mutable std::mutex mutex_;
  std::vector<int> pids_;
  bool one_ended_ = false;
};

}  // namespace taas::storage
