#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/fd.hpp"

namespace taas {

/// A file of which bytes are read, or that is mapped into memory. The constructor throws CheckpointError, which names
/// the path and the cause, and what reads throws std::exception, also for what lies behind the end.
class OpenedFile {
 public:
  explicit OpenedFile(const std::string& path);

  [[nodiscard]] std::uint64_t size() const { return size_; }
  void read(std::uint64_t offset, void* place, std::size_t bytes) const;
  [[nodiscard]] std::string text(std::uint64_t offset, std::size_t bytes) const;
  /// Memory of the file itself, which is read when it is used; what is written to it stays in this process.
  [[nodiscard]] at::DataPtr map(std::uint64_t offset, std::size_t bytes);

 private:
  void check_range(std::uint64_t offset, std::uint64_t bytes) const;

  Fd fd_;
  std::uint64_t size_ = 0;
  std::shared_ptr<void> mapping_;  ///< of all of it, made when it is first asked for
};

/// How the memory of tensors is read.
struct ReadOptions {
  bool mapped = false;  ///< it is the file's own
  bool check = true;    ///< against the checksums of the file
};

/// The records of a zip archive as torch.save writes it: none is compressed, and all are in one folder. The constructor
/// and what reads throw std::exception for a damaged archive, and CheckpointError, which names the path, where it
/// cannot be opened and for a record whose bytes are not those that were written.
class ZipFile {
 public:
  ZipFile(const std::string& path, const ReadOptions& options);

  [[nodiscard]] bool contains(const std::string& name) const { return records_.contains(name); }
  [[nodiscard]] std::uint64_t size_of(const std::string& name) const { return record(name).size; }
  [[nodiscard]] std::string text(const std::string& name) const;
  [[nodiscard]] at::DataPtr memory(const std::string& name);
  /// Of the list of all records, which has the checksums of their bytes.
  [[nodiscard]] std::uint32_t digest() const { return digest_; }

 private:
  struct Record {
    std::uint64_t offset = 0, size = 0;  ///< of its bytes
    std::uint32_t crc = 0;
  };
  struct Directory {
    std::uint64_t offset = 0, bytes = 0, count = 0;
  };
  [[nodiscard]] const Record& record(const std::string& name) const;
  [[nodiscard]] Directory find_directory() const;
  void read_directory();
  [[nodiscard]] std::uint64_t begin_of(std::uint64_t header, std::string_view name) const;
  void check(const std::string& name, std::uint32_t crc) const;

  std::string path_;
  OpenedFile file_;
  ReadOptions options_;
  std::unordered_map<std::string, Record> records_;
  std::uint32_t digest_ = 0;
};

}  // namespace taas
