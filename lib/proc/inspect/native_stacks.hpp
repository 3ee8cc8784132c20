#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace taas {

/// Where a thread is, with the part of its stack that its frames are told from.
struct StackSnapshot {
  int pid = 0;
  int tid = 0;
  std::uint64_t instruction = 0;  ///< 0: it runs, and is to be sampled
  std::uint64_t stack_pointer = 0;
  std::string stack = {};  ///< bytes from there up
};

/// By what /proc says of a thread that waits in the kernel, and by its memory: it is neither stopped nor woken, and no
/// system call of it ends early, as some do when a debugger attaches. Nothing for a thread that has ended, and where
/// the system forbids it.
std::optional<StackSnapshot> snapshot_stack(int pid, int tid);

struct NativeFrame {
  std::string function;  ///< "Trainer::step", as plain_name() has it; empty: not known
  std::string file;      ///< of the source; empty: the program was built without -g
  int line = 0;
  std::string module;  ///< the file that it is in: "/usr/lib/x86_64-linux-gnu/libc.so.6"
};

/// A function's name in a few words: without its return type, template arguments and parameters.
/// "void run<int>(std::vector<int> const&)" is "run", "main::{lambda()#1}::operator()() const" is "main::{lambda}".
std::string plain_name(std::string_view demangled);

/// Reads stacks of C and C++ by the tables that compilers make for exceptions, with libdw of elfutils, which is loaded
/// when it is needed. Inlined functions are frames of their own, where the program was built with -g. For x86_64.
///
/// A library that reads damaged files should not be in a process that matters: use it in one of its own.
class NativeReader {
 public:
  /// The error names what to install.
  static Result<NativeReader> load();
  ~NativeReader();
  NativeReader(NativeReader&&) noexcept;
  NativeReader& operator=(NativeReader&&) noexcept;

  /// Innermost first; none where nothing can be told. Of a thread that runs, where it was at a moment within 30 ms; an
  /// error where the kernel does not tell that (perf_event_open), which names what would let it.
  Result<std::vector<NativeFrame>> read(StackSnapshot snapshot);

 private:
  struct State;
  explicit NativeReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace taas
