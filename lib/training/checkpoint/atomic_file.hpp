#pragma once

#include <string>
#include <string_view>

#include "base/fd.hpp"

namespace taas {

/// Stands in the name of a file that is not whole yet, between its later name and a number.
constexpr const char* kTemporarySuffix = ".tmp-";

/// Makes the names in the folder of `path` survive a power cut. Throws CheckpointError, which names the path.
void sync_folder_of(const std::string& path);

/// A file that is there as a whole or not at all: it has another name until publish(), so that readers see what was
/// there before, or all of the new content. Without publish() nothing is left of it; what a process leaves that is
/// killed meanwhile is removed by the next one.
class AtomicFile {
 public:
  /// Throws CheckpointError, which names the path, like all others here.
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  /// Small pieces are collected. What fails is remembered, and told by publish(): whoever writes may not be able to
  /// stop.
  void write(std::string_view bytes);
  /// On disk, and then under its name.
  void publish();
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  void flush(std::string_view bytes);
  void flush_buffer();
  [[noreturn]] void fail(int cause) const;

  std::string path_;
  std::string temporary_;  // empty: published
  Fd fd_;
  std::string buffer_;
  std::size_t size_ = 0;
  int failure_ = 0;  // errno
};

}  // namespace taas
