#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace taas::data {

/// All copies that a device had been asked for at some moment.
class CopyMark {
 public:
  virtual ~CopyMark() = default;
  /// Whether they are done. Does not wait.
  virtual bool is_passed() = 0;
};

/// What reads slots after the program has let go of them: a GPU copies out of pinned memory by itself, while the
/// program goes on. All functions may be called from any thread, but mark() only where the program is not capturing a
/// graph.
class Copier {
 public:
  virtual ~Copier() = default;
  /// Pins whole pages. False: the memory stays as it is, and a copy out of it is over when the call that asks for it
  /// is.
  virtual bool pin(std::span<std::byte> memory) = 0;
  /// Before the memory is unmapped.
  virtual void unpin(std::span<std::byte> memory) = 0;
  /// Null: that cannot be told now, but later.
  virtual std::unique_ptr<CopyMark> mark() = 0;
};

}  // namespace taas::data
