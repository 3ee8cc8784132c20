#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace taas {

/// A value out of bytes that were read; zero where they are too few.
template <class T>
T load(std::span<const std::byte> bytes, std::size_t at) {
  T value{};
  if (at <= bytes.size() && sizeof(T) <= bytes.size() - at) std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

/// The memory of another process, which runs on: what is read may be half of what it was and half of what it is.
class ProcessMemory {
 public:
  struct Piece {
    std::uint64_t address = 0;
    std::span<std::byte> to;
    bool read = false;  ///< set where all of it was
  };

  explicit ProcessMemory(int pid) : pid_(pid) {}

  [[nodiscard]] int pid() const { return pid_; }
  /// In order, with one system call where all can be read.
  void read(std::span<Piece> pieces);
  bool read(std::uint64_t address, std::span<std::byte> to);
  template <class T>
  std::optional<T> read_value(std::uint64_t address) {
    std::array<std::byte, sizeof(T)> bytes;
    if (!read(address, bytes)) return std::nullopt;
    return load<T>(bytes, 0);
  }
  /// EPERM or ESRCH once the system has said that nothing of this process can be read; 0 before.
  [[nodiscard]] int refused() const { return refused_; }

 private:
  int pid_;
  int refused_ = 0;
};

/// Why the system does not let this process read that one, and what would let it.
Error memory_refused(int pid, int system_errno);

struct MappedFile {
  std::uint64_t start = 0;  ///< where its first byte is mapped
  std::string_view path;    ///< as the kernel names it, " (deleted)" included
};

/// Each file whose first byte is mapped, in the order of the addresses, until `visit` returns false. Of a process with
/// thousands of mappings the kernel takes a millisecond to tell them all.
Result<> visit_mapped_files(int pid, const std::function<bool(const MappedFile&)>& visit);

/// Where the dynamic symbols of the ELF file whose first byte is mapped at `start` are in that process; 0 for one that
/// it does not define. Read from its memory, so a file that was replaced since does not matter.
std::vector<std::uint64_t> find_symbols(ProcessMemory& memory, std::uint64_t start,
                                        std::span<const std::string_view> names);

}  // namespace taas
