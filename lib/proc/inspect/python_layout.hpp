#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace taas {

/// Where an interpreter keeps what a stack is made of: offsets in bytes within its structures, on 64-bit machines.
struct PythonLayout {
  int minor = 0;  ///< 13 of Python 3.13
  bool free_threaded = false;

  std::uint64_t runtime_interpreters = 0;  ///< _PyRuntimeState.interpreters.head
  std::uint64_t runtime_main_thread = 0;   ///< up to 3.12
  std::uint64_t interpreter_next = 0;
  std::uint64_t interpreter_threads = 0;
  std::uint64_t interpreter_gil = 0;  ///< of the pointer to the GIL; up to 3.11 it is in the runtime, and this is none
  std::uint64_t gil_holder = 0;       ///< in the GIL, and up to 3.11 in the runtime
  std::uint64_t gil_locked = 0;

  std::uint64_t thread_previous = 0;
  std::uint64_t thread_next = 0;
  std::uint64_t thread_interpreter = 0;
  std::uint64_t thread_frame = 0;   ///< of the pointer to the frame, in 3.11 and 3.12 to the C frame that has it
  std::uint64_t cframe_frame = 0;   ///< in 3.11 and 3.12
  std::uint64_t thread_native = 0;  ///< the kernel's number, from 3.11 on
  std::uint64_t thread_pthread = 0;
  std::uint64_t thread_chunk = 0;  ///< what frames lie in one behind the other, from 3.11 on

  std::uint64_t frame_previous = 0;
  std::uint64_t frame_code = 0;
  std::uint64_t frame_instruction = 0;  ///< a pointer; up to 3.10 a number of bytes (3.9) or code units (3.10)
  std::uint64_t frame_owner = 0;        ///< from 3.11 on

  std::uint64_t code_file = 0;
  std::uint64_t code_function = 0;
  std::uint64_t code_lines = 0;
  std::uint64_t code_first_line = 0;
  std::uint64_t code_instructions = 0;  ///< from 3.11 on: the size of what is before them

  std::uint64_t object_type = 0;
  std::uint64_t type_name = 0;
  std::uint64_t bytes_size = 0;  ///< of every object of variable size
  std::uint64_t bytes_data = 0;
  std::uint64_t text_length = 0;
  std::uint64_t text_state = 0;
  std::uint64_t text_ascii = 0;    ///< the size of what is before the characters of an ASCII string
  std::uint64_t text_compact = 0;  ///< and of another
};

/// Of 3.9 to 3.12, which have one layout each, on x86_64 as on aarch64.
std::optional<PythonLayout> known_layout(int minor);

constexpr std::size_t kMostDebugOffsets = 1024;  ///< bytes that are enough for the table of any version
/// From 3.13 on an interpreter tells its layout in a table at the begin of _PyRuntime (_Py_DebugOffsets), whose own
/// layout each version changes. Nothing where there is none, or none that makes sense; `minor` alone where the version
/// is not known here.
std::optional<PythonLayout> parse_debug_offsets(std::span<const std::byte> table);

/// The line of the instruction at this offset, in bytes, by the line table of a code object: co_lnotab of 3.9,
/// co_linetable of 3.10 (PEP 626) and that of 3.11 and later (Objects/locations.md). The first line before the first
/// instruction; 0 for one that belongs to no line.
int find_line(int minor, std::span<const std::byte> table, int first_line, std::int64_t instruction);

/// The size of a str or bytes object in memory by its first bytes; nothing if it can be none, or is too large.
std::optional<std::size_t> text_object_size(const PythonLayout& layout, std::span<const std::byte> object);
std::optional<std::size_t> bytes_object_size(const PythonLayout& layout, std::span<const std::byte> object);

/// The characters of a str object as UTF-8. A byte that Python could not decode (surrogateescape) is that byte again.
/// Nothing if there are some that no str has.
std::optional<std::string> decode_text(const PythonLayout& layout, std::span<const std::byte> object);

}  // namespace taas
