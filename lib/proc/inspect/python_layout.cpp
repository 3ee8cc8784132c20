#include "proc/inspect/python_layout.hpp"

#include <algorithm>
#include <array>

#include "proc/inspect/process_memory.hpp"

namespace taas {
namespace {

constexpr std::size_t kMostCharacters = 4096;
constexpr std::size_t kMostOfLineTable = 1 << 22;
constexpr std::uint64_t kMostOfOffset = 1 << 22;  // _PyRuntimeState has 460 KB in 3.12
constexpr std::uint64_t kMostOfSmallOffset = 4096;

/// Shared by 3.9 and 3.10: threads and code objects did not change between them.
constexpr PythonLayout kLayout310{
    .minor = 10,
    .runtime_interpreters = 32,
    .runtime_main_thread = 72,
    .interpreter_next = 0,
    .interpreter_threads = 8,
    .gil_holder = 360,
    .gil_locked = 368,
    .thread_previous = 0,
    .thread_next = 8,
    .thread_interpreter = 16,
    .thread_frame = 24,
    .thread_pthread = 176,
    .frame_previous = 24,
    .frame_code = 32,
    .frame_instruction = 96,
    .code_file = 104,
    .code_function = 112,
    .code_lines = 120,
    .code_first_line = 40,
    .object_type = 8,
    .type_name = 24,
    .bytes_size = 16,
    .bytes_data = 32,
    .text_length = 16,
    .text_state = 32,
    .text_ascii = 48,
    .text_compact = 72,
};

constexpr PythonLayout layout_39() {
  auto layout = kLayout310;
  layout.minor = 9;
  layout.frame_instruction = 104;
  return layout;
}

constexpr PythonLayout layout_311() {
  auto layout = kLayout310;
  layout.minor = 11;
  layout.runtime_interpreters = 40;
  layout.runtime_main_thread = 80;
  layout.interpreter_threads = 16;
  layout.gil_holder = 368;
  layout.gil_locked = 376;
  layout.thread_frame = 56;
  layout.cframe_frame = 8;
  layout.thread_native = 160;
  layout.thread_pthread = 152;
  layout.thread_chunk = 296;
  layout.frame_previous = 48;
  layout.frame_code = 32;
  layout.frame_instruction = 56;
  layout.frame_owner = 69;
  layout.code_file = 112;
  layout.code_function = 128;
  layout.code_lines = 136;
  layout.code_first_line = 72;
  layout.code_instructions = 184;
  return layout;
}

constexpr PythonLayout layout_312() {
  auto layout = layout_311();
  layout.minor = 12;
  layout.runtime_main_thread = 64;
  layout.interpreter_threads = 72;
  layout.interpreter_gil = 384;
  layout.gil_holder = 8;
  layout.gil_locked = 16;
  layout.cframe_frame = 0;
  layout.thread_native = 144;
  layout.thread_pthread = 136;
  layout.thread_chunk = 232;
  layout.frame_previous = 8;
  layout.frame_code = 0;
  layout.frame_owner = 70;
  layout.code_first_line = 68;
  layout.code_instructions = 192;
  layout.text_ascii = 40;
  layout.text_compact = 56;
  return layout;
}

/// _Py_DebugOffsets is a row of groups of 64-bit numbers behind a cookie, the version and whether it is free-threaded.
/// How many numbers each group has, and where in it those are that later versions moved.
struct DebugGroups {
  std::size_t interpreter, thread, before_frame, frame, code, type, before_tuple, before_dict;
  std::size_t interpreter_gil, thread_pthread;  // index within the group
};
constexpr std::size_t kRuntimeGroup = 3;
constexpr DebugGroups kGroups313{13, 9, 0, 6, 10, 4, 0, 0, 8, 5};
constexpr DebugGroups kGroups314{16, 9, 0, 8, 11, 4, 0, 4, 9, 5};  // before dict: set
constexpr DebugGroups kGroups315{16, 16, 1, 8, 11,
                                 6,  2,  4, 9, 8};  // before frame: one of exceptions; before tuple: heap type

class DebugTable {
 public:
  DebugTable(std::span<const std::byte> bytes, const DebugGroups& groups) : bytes_(bytes), groups_(groups) {}

  PythonLayout layout(int minor) const {
    PythonLayout layout{.minor = minor, .free_threaded = number(2) != 0};
    std::size_t at = 3;
    layout.runtime_interpreters = number(at + 2);
    at += kRuntimeGroup;
    read_interpreter(at, layout);
    at += groups_.interpreter;
    read_thread(at, layout);
    at += groups_.thread + groups_.before_frame;
    layout.frame_previous = number(at + 1);
    layout.frame_code = number(at + 2);
    layout.frame_instruction = number(at + 3);
    layout.frame_owner = number(at + 5);
    at += groups_.frame;
    layout.code_file = number(at + 1);
    layout.code_function = number(at + 3);
    layout.code_lines = number(at + 4);
    layout.code_first_line = number(at + 5);
    layout.code_instructions = number(at + 9);
    at += groups_.code;
    layout.object_type = number(at + 1);
    layout.type_name = number(at + 2 + 1);
    at += 2 + groups_.type + groups_.before_tuple + 3 + 3 + groups_.before_dict + 3 + 2 + 3;  // tuple … int
    layout.bytes_size = number(at + 1);
    layout.bytes_data = number(at + 2);
    layout.text_state = number(at + 3 + 1);
    layout.text_length = number(at + 3 + 2);
    layout.text_ascii = number(at + 3 + 3);
    layout.text_compact = layout.text_ascii + 16;  // the length as UTF-8, and a pointer to that
    return layout;
  }

 private:
  [[nodiscard]] std::uint64_t number(std::size_t index) const { return load<std::uint64_t>(bytes_, 8 * index); }

  void read_interpreter(std::size_t at, PythonLayout& layout) const {
    layout.interpreter_next = number(at + 2);
    layout.interpreter_threads = number(at + 3);
    const auto gil = at + groups_.interpreter_gil;  // the pointer, the GIL, and then what is in that
    layout.interpreter_gil = number(gil);
    layout.gil_locked = number(gil + 3) - number(gil + 1);
    layout.gil_holder = number(gil + 4) - number(gil + 1);
  }

  void read_thread(std::size_t at, PythonLayout& layout) const {
    layout.thread_previous = number(at + 1);
    layout.thread_next = number(at + 2);
    layout.thread_interpreter = number(at + 3);
    layout.thread_frame = number(at + 4);
    layout.thread_pthread = number(at + groups_.thread_pthread);
    layout.thread_native = number(at + groups_.thread_pthread + 1);
    layout.thread_chunk = number(at + groups_.thread_pthread + 2);
  }

  std::span<const std::byte> bytes_;
  const DebugGroups& groups_;
};

bool makes_sense(const PythonLayout& layout) {
  const std::array large = {layout.runtime_interpreters, layout.interpreter_next, layout.interpreter_threads,
                            layout.interpreter_gil};
  const std::array small = {
      layout.gil_holder,         layout.gil_locked,        layout.thread_previous, layout.thread_next,
      layout.thread_interpreter, layout.thread_frame,      layout.thread_native,   layout.thread_pthread,
      layout.thread_chunk,       layout.frame_previous,    layout.frame_code,      layout.frame_instruction,
      layout.frame_owner,        layout.code_file,         layout.code_function,   layout.code_lines,
      layout.code_first_line,    layout.code_instructions, layout.object_type,     layout.type_name,
      layout.bytes_size,         layout.bytes_data,        layout.text_length,     layout.text_state,
      layout.text_ascii,         layout.text_compact};
  const bool in_order = layout.object_type > 0 && layout.bytes_size < layout.bytes_data &&
                        layout.text_length < layout.text_ascii && layout.text_state < layout.text_ascii &&
                        layout.code_lines < layout.code_instructions && layout.code_file < layout.code_instructions;
  return in_order && std::all_of(large.begin(), large.end(), [](auto offset) { return offset < kMostOfOffset; }) &&
         std::all_of(small.begin(), small.end(), [](auto offset) { return offset < kMostOfSmallOffset; });
}

int byte_at(std::span<const std::byte> bytes, std::size_t at) { return std::to_integer<int>(bytes[at]); }
int signed_byte_at(std::span<const std::byte> bytes, std::size_t at) {
  return static_cast<signed char>(std::to_integer<unsigned char>(bytes[at]));
}

/// Pairs of how many bytes on, and how many lines on.
int find_line_39(std::span<const std::byte> table, int line, std::int64_t instruction) {
  std::int64_t address = 0;
  for (std::size_t at = 0; at + 1 < table.size(); at += 2) {
    address += byte_at(table, at);
    if (address > instruction) break;
    line += signed_byte_at(table, at + 1);
  }
  return line;
}

/// Pairs of how many lines on, for how many bytes; -128 for those of no line.
int find_line_310(std::span<const std::byte> table, int line, std::int64_t instruction) {
  constexpr int kNoLine = -128;
  std::int64_t end = 0;
  for (std::size_t at = 0; at + 1 < table.size(); at += 2) {
    end += byte_at(table, at);
    const int lines = signed_byte_at(table, at + 1);
    if (lines != kNoLine) line += lines;
    if (instruction < end) return lines == kNoLine ? 0 : line;
  }
  return 0;
}

/// Six bits a byte, the lowest first; bit 6 tells that there are more.
int signed_varint(std::span<const std::byte> table, std::size_t at) {
  std::uint32_t value = 0;
  for (unsigned shift = 0; at < table.size() && shift < 32; ++at, shift += 6) {
    value |= static_cast<std::uint32_t>(byte_at(table, at) & 63) << shift;
    if ((byte_at(table, at) & 64) == 0) break;
  }
  const int half = static_cast<int>(value >> 1);
  return value & 1 ? -half : half;
}

/// Entries of a byte with bit 7 set (its kind, and how many code units of two bytes it is for) and others without.
int find_line_311(std::span<const std::byte> table, int line, std::int64_t instruction) {
  enum Kind { kOneLine0 = 10, kOneLine2 = 12, kNoColumns = 13, kLong = 14, kNone = 15 };
  std::int64_t end = 0;
  for (std::size_t at = 0; at < table.size();) {
    const int first = byte_at(table, at);
    const int kind = first >> 3 & 15;
    if (kind >= kOneLine0 && kind <= kOneLine2) line += kind - kOneLine0;
    if (kind == kNoColumns || kind == kLong) line += signed_varint(table, at + 1);
    end += 2 * ((first & 7) + 1);
    if (instruction < end) return kind == kNone ? 0 : line;
    do ++at;
    while (at < table.size() && (byte_at(table, at) & 128) == 0);
  }
  return 0;
}

struct TextState {
  unsigned kind;  ///< bytes a character
  bool compact;
  bool ascii;
};

TextState text_state(const PythonLayout& layout, std::span<const std::byte> object) {
  // Two bits of interning come first, and a whole byte where there is no GIL, from 3.14 on.
  const unsigned shift = layout.free_threaded && layout.minor >= 14 ? 8 : 2;
  const auto bits = load<std::uint32_t>(object, layout.text_state) >> shift;
  return {bits & 7, (bits >> 3 & 1) != 0, (bits >> 4 & 1) != 0};
}

void append_utf8(std::string& text, std::uint32_t code) {
  auto rest = [&](unsigned shift) { return static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code >= 0xdc80 && code <= 0xdcff) {
    text += static_cast<char>(code & 0xff);
  } else if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += {static_cast<char>(0xc0 | code >> 6), rest(0)};
  } else if (code >= 0xd800 && code <= 0xdfff) {
    text += "\xef\xbf\xbd";
  } else if (code < 0x10000) {
    text += {static_cast<char>(0xe0 | code >> 12), rest(6), rest(0)};
  } else {
    text += {static_cast<char>(0xf0 | code >> 18), rest(12), rest(6), rest(0)};
  }
}

}  // namespace

std::optional<PythonLayout> known_layout(int minor) {
  switch (minor) {
    case 9:
      return layout_39();
    case 10:
      return kLayout310;
    case 11:
      return layout_311();
    case 12:
      return layout_312();
    default:
      return std::nullopt;
  }
}

std::optional<PythonLayout> parse_debug_offsets(std::span<const std::byte> table) {
  constexpr std::string_view kCookie = "xdebugpy";
  if (table.size() < kMostDebugOffsets) return std::nullopt;
  if (std::memcmp(table.data(), kCookie.data(), kCookie.size()) != 0) return std::nullopt;
  const auto version = load<std::uint64_t>(table, 8);  // PY_VERSION_HEX
  if (version >> 24 != 3) return std::nullopt;
  const int minor = static_cast<int>(version >> 16 & 0xff);
  if (minor < 13 || minor > 15) return PythonLayout{.minor = minor};
  const auto& groups = minor == 13 ? kGroups313 : minor == 14 ? kGroups314 : kGroups315;
  auto layout = DebugTable(table, groups).layout(minor);
  return makes_sense(layout) ? std::optional(layout) : std::nullopt;
}

int find_line(int minor, std::span<const std::byte> table, int first_line, std::int64_t instruction) {
  if (instruction < 0) return first_line;
  if (minor <= 9) return find_line_39(table, first_line, instruction);
  if (minor == 10) return find_line_310(table, first_line, instruction);
  return find_line_311(table, first_line, instruction);
}

std::optional<std::size_t> text_object_size(const PythonLayout& layout, std::span<const std::byte> object) {
  const auto state = text_state(layout, object);
  const auto length = load<std::uint64_t>(object, layout.text_length);
  const bool sane = object.size() >= layout.text_ascii && state.compact && length <= kMostCharacters &&
                    (state.kind == 1 || (!state.ascii && (state.kind == 2 || state.kind == 4)));
  if (!sane) return std::nullopt;
  return (state.ascii ? layout.text_ascii : layout.text_compact) + length * state.kind;
}

std::optional<std::size_t> bytes_object_size(const PythonLayout& layout, std::span<const std::byte> object) {
  const auto size = load<std::uint64_t>(object, layout.bytes_size);
  if (object.size() < layout.bytes_data || size > kMostOfLineTable) return std::nullopt;
  return layout.bytes_data + size;
}

std::optional<std::string> decode_text(const PythonLayout& layout, std::span<const std::byte> object) {
  const auto size = text_object_size(layout, object);
  if (!size || *size > object.size()) return std::nullopt;
  const auto state = text_state(layout, object);
  std::string text;
  for (auto at = state.ascii ? layout.text_ascii : layout.text_compact; at < *size; at += state.kind) {
    const std::uint32_t code = state.kind == 1   ? load<std::uint8_t>(object, at)
                               : state.kind == 2 ? load<std::uint16_t>(object, at)
                                                 : load<std::uint32_t>(object, at);
    if (code > 0x10ffff || (state.ascii && code > 0x7f)) return std::nullopt;
    append_utf8(text, code);
  }
  return text;
}

}  // namespace taas
