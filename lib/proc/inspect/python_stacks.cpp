#include "proc/inspect/python_stacks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "proc/family/descendants.hpp"
#include "proc/inspect/process_memory.hpp"
#include "proc/inspect/python_layout.hpp"

namespace taas {
namespace {

using Bytes = std::vector<std::byte>;

constexpr int kAttempts = 12;  // of a whole read
constexpr int kAttemptsBeforeSearch = 3;
constexpr int kWalks = 6;  // of one stack, until two agree
constexpr std::size_t kMostProcesses = 512;
constexpr std::size_t kMostCodes = 8192;  // of a process
constexpr std::size_t kMostInterpreters = 256;
constexpr std::size_t kMostThreads = 4096;
constexpr std::size_t kFramesBeyond = 64;  // walked though not asked for, so that two walks of a moving stack meet
constexpr std::size_t kMostOfChunk = 1 << 16;
constexpr std::size_t kGuess = 256;  // bytes of a name, or a line table, that are read before its size is known
constexpr std::size_t kPage = 4096;
constexpr unsigned kLastOwner = 4;  // FRAME_OWNED_BY_CSTACK of 3.14
constexpr unsigned kFirstOwnerInC = 3;

/// What was read of a code object, and the bytes of it that show that it still is the same.
struct Code {
  Bytes header;
  std::string function;
  std::string file;
  Bytes lines;
  int first_line = 0;
};

struct Interpreter {
  std::uint64_t address = 0;
  std::uint64_t next = 0;
  std::uint64_t threads = 0;
  std::uint64_t gil = 0;
};

struct Thread {
  std::uint64_t address = 0;
  std::uint64_t chunk = 0;
  std::uint64_t pthread = 0;
  int tid = 0;
  bool holds_gil = false;
};

struct Step {
  std::uint64_t frame = 0;
  std::uint64_t code = 0;
  std::uint64_t instruction = 0;
  friend bool operator==(const Step&, const Step&) = default;
};

struct Walk {
  std::vector<Step> steps;  ///< the innermost first
  bool whole = false;       ///< up to the outermost
};

/// One process' interpreter, and its code objects by address. `runtime` is 0 before it was found.
struct PythonProcess {
  std::uint64_t started = 0;
  std::uint64_t runtime = 0;
  PythonLayout layout;
  std::uint64_t code_type = 0;
  std::unordered_map<std::uint64_t, Code> codes;
};

}  // namespace

struct PythonReader::Known {
  std::unordered_map<int, PythonProcess> processes;
};

namespace {

/// The version by what the interpreter exports; from 3.13 on it tells its layout itself. A layout without offsets where
/// that version is not known here, nothing where it is no interpreter.
std::optional<PythonLayout> find_layout(ProcessMemory& memory, std::uint64_t start, std::uint64_t runtime) {
  Bytes table(kMostDebugOffsets);
  if (memory.read(runtime, table)) {
    if (auto layout = parse_debug_offsets(table)) return layout;
  }
  // Py_Version came with 3.11, the other two functions with 3.10 and 3.9.
  constexpr std::array<std::string_view, 3> kNames = {"Py_Version", "PyModule_AddObjectRef", "PyObject_CallNoArgs"};
  const auto found = find_symbols(memory, start, kNames);
  int minor = found[1] != 0 ? 10 : found[2] != 0 ? 9 : 8;
  if (found[0] != 0) {
    auto version = memory.read_value<std::uint64_t>(found[0]);  // PY_VERSION_HEX
    if (!version || *version >> 24 != 3) return std::nullopt;
    minor = static_cast<int>(*version >> 16 & 0xff);
  }
  auto layout = known_layout(minor);
  return layout ? layout : PythonLayout{.minor = minor};
}

bool is_known(const PythonLayout& layout) { return layout.type_name != 0; }

struct Found {
  std::uint64_t runtime = 0;
  PythonLayout layout;
};

/// The interpreter of this file, if it is one that runs.
std::optional<Found> find_runtime_in(ProcessMemory& memory, std::uint64_t start) {
  constexpr std::array<std::string_view, 1> kName = {"_PyRuntime"};
  const auto runtime = find_symbols(memory, start, kName)[0];
  if (runtime == 0) return std::nullopt;
  auto layout = find_layout(memory, start, runtime);
  if (!layout) return std::nullopt;
  if (!is_known(*layout)) return Found{runtime, *layout};
  const auto head = memory.read_value<std::uint64_t>(runtime + layout->runtime_interpreters);
  if (head.value_or(0) == 0) return std::nullopt;  // not begun yet, or ended
  return Found{runtime, *layout};
}

/// The program itself, and what is called Python, before all others: those only matter in a program that has the
/// interpreter inside a library of another name.
Result<std::optional<Found>> find_runtime(ProcessMemory& memory) {
  std::optional<Found> found;
  std::vector<std::uint64_t> others;
  bool first = true;
  auto visited = visit_mapped_files(memory.pid(), [&](const MappedFile& file) {
    const auto name = file.path.substr(file.path.rfind('/') + 1);
    if (std::exchange(first, false) || name.find("python") != name.npos) {
      found = find_runtime_in(memory, file.start);
    } else {
      others.push_back(file.start);
    }
    return !found && memory.refused() == 0;
  });
  if (!visited) return visited.error();
  if (first) return memory_refused(memory.pid(), ESRCH);  // it has no memory any more
  for (auto start = others.begin(); start != others.end() && !found && memory.refused() == 0; ++start) {
    found = find_runtime_in(memory, *start);
  }
  if (memory.refused() != 0) return memory_refused(memory.pid(), memory.refused());
  return found;
}

bool is_pointer(std::uint64_t address) { return address >= kPage && address % 8 == 0 && address >> 56 == 0; }

/// One look at a process. Every member gives nothing where what it read makes no sense.
class Reading {
  struct Object {
    std::uint64_t address = 0;
    std::uint64_t head = 0;  ///< the size of what every one of its type has
  };

 public:
  Reading(ProcessMemory& memory, PythonProcess& process, std::size_t most_frames)
      : memory_(memory), process_(process), layout_(process.layout), most_frames_(most_frames) {
    frame_size_ =
        8 + std::max({layout_.frame_previous, layout_.frame_code, layout_.frame_instruction, layout_.frame_owner});
  }

  /// The oldest thread first.
  std::optional<std::vector<Thread>> list_threads();
  std::optional<Walk> walk_until_stable(const Thread& thread);
  /// Reads those that are not known, and forgets those that are others by now.
  void read_codes(const std::vector<std::uint64_t>& addresses);
  std::optional<std::vector<PythonFrame>> describe(const Walk& walk) const;

 private:
  std::optional<Interpreter> read_interpreter(std::uint64_t address);
  bool list_threads_of(const Interpreter& interpreter, std::vector<Thread>& threads);
  std::optional<std::uint64_t> gil_holder(const Interpreter& interpreter);
  void find_tids(std::vector<Thread>& threads);
  std::optional<Walk> walk(const Thread& thread);
  std::optional<std::uint64_t> place_of_frame(const Thread& thread);
  std::optional<std::uint64_t> read_stack(const Thread& thread);
  std::optional<Step> read_frame(std::uint64_t frame, std::uint64_t& previous, bool& in_c);
  bool check_type(std::uint64_t type);
  std::vector<Bytes> read_objects(const std::vector<Object>& wanted);
  bool complete(std::uint64_t address, Bytes& object, std::optional<std::size_t> size);
  [[nodiscard]] std::optional<std::int64_t> instruction_offset(const Step& step, const Code& code) const;

  ProcessMemory& memory_;
  PythonProcess& process_;
  const PythonLayout& layout_;
  std::size_t most_frames_;
  std::size_t frame_size_;  ///< what is read of one
  Bytes chunk_;             ///< a copy of the stack that is walked
  std::uint64_t chunk_start_ = 0;
};

std::optional<Interpreter> Reading::read_interpreter(std::uint64_t address) {
  std::array<std::byte, 24> bytes{};
  const std::span all(bytes);
  std::array<ProcessMemory::Piece, 3> pieces{{{address + layout_.interpreter_next, all.subspan(0, 8)},
                                              {address + layout_.interpreter_threads, all.subspan(8, 8)},
                                              {address + layout_.interpreter_gil, all.subspan(16, 8)}}};
  memory_.read(pieces);
  if (!std::all_of(pieces.begin(), pieces.end(), [](const auto& piece) { return piece.read; })) return std::nullopt;
  return Interpreter{address, load<std::uint64_t>(all, 0), load<std::uint64_t>(all, 8), load<std::uint64_t>(all, 16)};
}

std::optional<std::uint64_t> Reading::gil_holder(const Interpreter& interpreter) {
  if (layout_.free_threaded) return 0;
  const auto gil = layout_.interpreter_gil == 0 ? process_.runtime : interpreter.gil;
  const auto locked = memory_.read_value<std::int32_t>(gil + layout_.gil_locked);
  const auto holder = memory_.read_value<std::uint64_t>(gil + layout_.gil_holder);
  if (!locked || !holder) return std::nullopt;
  return *locked == 1 ? *holder : 0;
}

std::optional<std::vector<Thread>> Reading::list_threads() {
  auto head = memory_.read_value<std::uint64_t>(process_.runtime + layout_.runtime_interpreters);
  if (!head || *head == 0) return std::nullopt;
  std::vector<Thread> threads;
  std::size_t count = 0;
  for (auto address = *head; address != 0; ++count) {
    auto interpreter = is_pointer(address) && count < kMostInterpreters ? read_interpreter(address) : std::nullopt;
    if (!interpreter || !list_threads_of(*interpreter, threads)) return std::nullopt;
    address = interpreter->next;
  }
  std::reverse(threads.begin(), threads.end());  // new interpreters and threads are put in front
  if (layout_.thread_native == 0) find_tids(threads);
  return threads;
}

/// Each thread names the one before it, and its interpreter: so what is followed here is a list of threads.
bool Reading::list_threads_of(const Interpreter& interpreter, std::vector<Thread>& threads) {
  const auto holder = gil_holder(interpreter);
  if (!holder) return false;
  Bytes bytes(8 + std::max({layout_.thread_frame, layout_.thread_chunk, layout_.thread_pthread, layout_.thread_native,
                            layout_.thread_previous, layout_.thread_next, layout_.thread_interpreter}));
  const auto others = threads.size();
  std::uint64_t previous = 0;
  for (auto address = interpreter.threads; address != 0;) {
    if (!is_pointer(address) || threads.size() >= kMostThreads || !memory_.read(address, bytes)) return false;
    auto number = [&](std::uint64_t offset) { return load<std::uint64_t>(bytes, offset); };
    if (number(layout_.thread_previous) != previous || number(layout_.thread_interpreter) != interpreter.address) {
      return false;
    }
    threads.push_back({.address = address,
                       .chunk = layout_.thread_chunk == 0 ? 0 : number(layout_.thread_chunk),
                       .pthread = number(layout_.thread_pthread),
                       .tid = layout_.thread_native == 0 ? 0 : static_cast<int>(number(layout_.thread_native)),
                       .holds_gil = address == *holder});
    previous = std::exchange(address, number(layout_.thread_next));
  }
  std::unordered_set<int> seen;  // until it runs, a thread of 3.11 has the number of the one that makes it
  for (auto thread = threads.rbegin(); thread != threads.rend() - static_cast<std::ptrdiff_t>(others); ++thread) {
    if (!seen.insert(thread->tid).second) thread->tid = 0;
  }
  return true;
}

/// Before 3.11 a thread is known by its pthread_t alone, in glibc the address of a structure that has the kernel's
/// number somewhere: where the main thread has the process' number there, the others have theirs.
void Reading::find_tids(std::vector<Thread>& threads) {
  constexpr std::size_t kMostOfPthread = 1024;
  const auto main_pthread = memory_.read_value<std::uint64_t>(process_.runtime + layout_.runtime_main_thread);
  auto main =
      std::find_if(threads.begin(), threads.end(), [&](auto& thread) { return thread.pthread == main_pthread; });
  Bytes bytes(kMostOfPthread);
  if (main == threads.end() || !memory_.read(main->pthread, bytes)) return;
  std::size_t at = 0;
  while (at < bytes.size() && load<std::int32_t>(bytes, at) != memory_.pid()) at += sizeof(std::int32_t);
  if (at == bytes.size()) return;
  for (auto& thread : threads) {
    const auto tid = memory_.read_value<std::int32_t>(thread.pthread + at).value_or(0);
    const auto task = fmt::format("/proc/{}/task/{}", memory_.pid(), tid);
    if (tid > 0 && ::access(task.c_str(), F_OK) == 0) thread.tid = tid;
  }
}

/// Where this thread has the pointer to its innermost frame.
std::optional<std::uint64_t> Reading::place_of_frame(const Thread& thread) {
  const auto place = thread.address + layout_.thread_frame;
  if (layout_.minor != 11 && layout_.minor != 12) return place;
  auto cframe = memory_.read_value<std::uint64_t>(place);
  return cframe ? std::optional(*cframe + layout_.cframe_frame) : std::nullopt;
}

/// Copies what the frames of this thread lie in, and gives the innermost one, in one call: so both are of one moment,
/// or nearly. Nothing where it has become another one meanwhile.
std::optional<std::uint64_t> Reading::read_stack(const Thread& thread) {
  const auto place = place_of_frame(thread);
  const auto frame = place ? memory_.read_value<std::uint64_t>(*place) : std::nullopt;
  if (!frame) return std::nullopt;
  std::size_t size = 0;
  if (thread.chunk != 0) {
    const bool inside = *frame > thread.chunk && *frame - thread.chunk < kMostOfChunk - frame_size_;
    size = inside ? *frame - thread.chunk + frame_size_ : kPage;
  }
  chunk_.resize(size);
  chunk_start_ = thread.chunk;
  std::array<std::byte, 16> pointers{};
  const std::span both(pointers);
  std::array<ProcessMemory::Piece, 3> pieces{{{*place, both.first(8)}, {thread.chunk, chunk_}, {*place, both.last(8)}}};
  memory_.read(pieces);
  if (!pieces[1].read) chunk_.clear();
  const auto before = load<std::uint64_t>(pointers, 0);
  const bool same = pieces[0].read && pieces[2].read && before == load<std::uint64_t>(pointers, 8);
  // A C frame that was left still names a frame, but one that is no more.
  return same && place_of_frame(thread) == place ? std::optional(before) : std::nullopt;
}

std::optional<Step> Reading::read_frame(std::uint64_t frame, std::uint64_t& previous, bool& in_c) {
  Bytes own;
  std::span<const std::byte> bytes;
  const auto within = frame - chunk_start_;
  if (frame >= chunk_start_ && within < chunk_.size() && chunk_.size() - within >= frame_size_) {
    bytes = std::span(chunk_).subspan(within, frame_size_);
  } else {
    own.resize(frame_size_);
    if (!memory_.read(frame, own)) return std::nullopt;
    bytes = own;
  }
  previous = load<std::uint64_t>(bytes, layout_.frame_previous);
  Step step{.frame = frame, .code = load<std::uint64_t>(bytes, layout_.frame_code)};
  if (layout_.minor >= 14) step.code &= ~std::uint64_t{7};  // a tagged reference (_PyStackRef)
  if (layout_.minor <= 10) {
    step.instruction = static_cast<std::uint64_t>(load<std::int32_t>(bytes, layout_.frame_instruction));
  } else {
    const auto owner = load<std::uint8_t>(bytes, layout_.frame_owner);
    if (owner > kLastOwner) return std::nullopt;
    in_c = owner >= kFirstOwnerInC;
    step.instruction = load<std::uint64_t>(bytes, layout_.frame_instruction);
  }
  if (!in_c && !is_pointer(step.code)) return std::nullopt;
  return step;
}

std::optional<Walk> Reading::walk(const Thread& thread) {
  const auto innermost = read_stack(thread);
  if (!innermost) return std::nullopt;
  auto frame = innermost;
  Walk walk;
  const auto most = most_frames_ + kFramesBeyond;
  std::size_t passed = 0;
  while (*frame != 0 && walk.steps.size() < most) {
    bool in_c = false;
    std::uint64_t previous = 0;
    auto step = is_pointer(*frame) ? read_frame(*frame, previous, in_c) : std::nullopt;
    // A frame in C has one of Python around it: more of them than that are a ring.
    if (!step || previous == *frame || ++passed > 2 * most + 2) return std::nullopt;
    if (!in_c) walk.steps.push_back(*step);
    // Without a copy of the stack: the frame around it is that at the time of a call that is over, if it is.
    const bool check = layout_.minor <= 10 && passed == 2;
    if (check && memory_.read_value<std::uint64_t>(thread.address + layout_.thread_frame) != innermost)
      return std::nullopt;
    frame = previous;
  }
  walk.whole = *frame == 0;
  return walk;
}

/// The frames of the later walk that the earlier one has too, seen from outside, and the one inside of them if only its
/// instruction is another.
Walk common_part(const Walk& earlier, const Walk& later) {
  if (earlier.steps == later.steps) return later;
  auto begin = later.steps.size();
  // What the later walk has further outside than the earlier one went is not in that.
  bool met = earlier.whole;
  while (begin > 0) {
    const auto& step = later.steps[begin - 1];
    auto same = std::find_if(earlier.steps.begin(), earlier.steps.end(),
                             [&](const Step& other) { return step.frame == other.frame && step.code == other.code; });
    if (same == earlier.steps.end() && met) break;
    --begin;
    if (same == earlier.steps.end()) continue;
    met = true;
    if (same->instruction != step.instruction) break;
  }
  if (!met) return {};
  return {{later.steps.begin() + static_cast<std::ptrdiff_t>(begin), later.steps.end()}, later.whole};
}

std::optional<Walk> Reading::walk_until_stable(const Thread& thread) {
  auto earlier = walk(thread);
  Walk best;
  for (int count = 1; count < kWalks && memory_.refused() == 0; ++count) {
    auto later = walk(thread);
    if (earlier && later) {
      auto common = common_part(*earlier, *later);
      if (common.steps.size() == later->steps.size()) return later;
      if (common.steps.size() >= best.steps.size()) best = std::move(common);
    }
    earlier = std::move(later);
  }
  return best.steps.empty() ? std::nullopt : std::optional(std::move(best));
}

/// All code objects are of one type, which is called "code".
bool Reading::check_type(std::uint64_t type) {
  if (process_.code_type != 0) return type == process_.code_type;
  const auto name = memory_.read_value<std::uint64_t>(type + layout_.type_name);
  if (!name) return false;
  const auto text = memory_.read_value<std::array<char, 5>>(*name);
  if (!text || *text != std::array{'c', 'o', 'd', 'e', '\0'}) return false;
  process_.code_type = type;
  return true;
}

/// The first bytes of each, empty where they cannot be read. Behind the page that an object begins in may be nothing,
/// unless the object itself goes on there.
std::vector<Bytes> Reading::read_objects(const std::vector<Object>& wanted) {
  std::vector<Bytes> objects;
  std::vector<ProcessMemory::Piece> pieces;
  for (const auto& object : wanted) {
    const auto to_page_end = kPage - object.address % kPage;
    objects.emplace_back(std::clamp<std::size_t>(to_page_end, object.head, kGuess));
  }
  for (std::size_t i = 0; i < objects.size(); ++i) pieces.push_back({wanted[i].address, objects[i]});
  memory_.read(pieces);
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (!pieces[i].read) objects[i].clear();
  }
  return objects;
}

/// Cuts an object to its size, or reads what is missing of it.
bool Reading::complete(std::uint64_t address, Bytes& object, std::optional<std::size_t> size) {
  if (!size) return false;
  const bool all = *size <= object.size();
  object.resize(*size);
  return all || memory_.read(address, object);
}

void Reading::read_codes(const std::vector<std::uint64_t>& addresses) {
  const auto size = layout_.code_instructions != 0 ? layout_.code_instructions : layout_.code_lines + 8;
  std::vector<Bytes> headers(addresses.size(), Bytes(size));
  std::vector<ProcessMemory::Piece> pieces;
  for (std::size_t i = 0; i < addresses.size(); ++i) pieces.push_back({addresses[i], headers[i]});
  memory_.read(pieces);
  std::vector<std::size_t> fresh;
  std::vector<Object> parts;  // three of each
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    std::fill_n(headers[i].begin(), layout_.object_type, std::byte{0});  // the number of references
    auto known = process_.codes.find(addresses[i]);
    if (known != process_.codes.end() && pieces[i].read && known->second.header == headers[i]) continue;
    process_.codes.erase(addresses[i]);
    if (!pieces[i].read || !check_type(load<std::uint64_t>(headers[i], layout_.object_type))) continue;
    fresh.push_back(i);
    parts.push_back({load<std::uint64_t>(headers[i], layout_.code_function), layout_.text_ascii});
    parts.push_back({load<std::uint64_t>(headers[i], layout_.code_file), layout_.text_ascii});
    parts.push_back({load<std::uint64_t>(headers[i], layout_.code_lines), layout_.bytes_data});
  }
  auto objects = read_objects(parts);
  for (std::size_t n = 0; n < fresh.size(); ++n) {
    auto* object = &objects[3 * n];
    bool whole = complete(parts[3 * n].address, object[0], text_object_size(layout_, object[0])) &&
                 complete(parts[3 * n + 1].address, object[1], text_object_size(layout_, object[1])) &&
                 complete(parts[3 * n + 2].address, object[2], bytes_object_size(layout_, object[2]));
    auto function = whole ? decode_text(layout_, object[0]) : std::nullopt;
    auto file = whole ? decode_text(layout_, object[1]) : std::nullopt;
    if (!function || !file) continue;
    object[2].erase(object[2].begin(), object[2].begin() + static_cast<std::ptrdiff_t>(layout_.bytes_data));
    auto& header = headers[fresh[n]];
    const auto first_line = load<std::int32_t>(header, layout_.code_first_line);
    process_.codes[addresses[fresh[n]]] = {std::move(header), *std::move(function), *std::move(file),
                                           std::move(object[2]), first_line};
  }
}

/// In bytes; -1 or -2 before the first one. Nothing where it is not one of this code: without a GIL each thread may
/// have a copy of its own.
std::optional<std::int64_t> Reading::instruction_offset(const Step& step, const Code& code) const {
  const auto plain = static_cast<std::int64_t>(step.instruction);
  if (layout_.minor <= 10) return layout_.minor == 10 ? 2 * plain : plain;
  const auto size = 2 * load<std::int64_t>(code.header, layout_.bytes_size);
  const auto offset = plain - static_cast<std::int64_t>(step.code + layout_.code_instructions);
  if (offset < -2 || offset >= size) return std::nullopt;
  return offset;
}

/// What runs between a class that is called often and its __init__, from 3.12 on; no traceback shows it.
bool is_internal(const Code& code) {
  return code.first_line == 0 && code.function == "__init__" && code.file == "__init__";
}

std::optional<std::vector<PythonFrame>> Reading::describe(const Walk& walk) const {
  std::vector<PythonFrame> frames;
  for (const auto& step : walk.steps) {
    if (frames.size() == most_frames_) break;
    auto known = process_.codes.find(step.code);
    if (known == process_.codes.end()) return std::nullopt;
    const auto& code = known->second;
    if (is_internal(code)) continue;
    const auto offset = instruction_offset(step, code);
    if (!offset && !layout_.free_threaded) return std::nullopt;
    frames.push_back(
        {code.function, code.file, offset ? find_line(layout_.minor, code.lines, code.first_line, *offset) : 0});
  }
  return frames;
}

/// Nothing where too little of it made sense. What is wrong with one thread only leaves that one out the last time.
std::optional<PythonStacks> look_at(ProcessMemory& memory, PythonProcess& process, std::size_t most_frames, bool last) {
  Reading look(memory, process, most_frames);
  const auto threads = look.list_threads();
  if (!threads) return std::nullopt;
  std::vector<std::pair<const Thread*, Walk>> walks;
  std::vector<std::uint64_t> codes;
  for (const auto& thread : *threads) {
    auto walk = look.walk_until_stable(thread);
    if (!walk && !last) return std::nullopt;
    if (!walk) continue;
    for (const auto& step : walk->steps) codes.push_back(step.code);
    walks.emplace_back(&thread, *std::move(walk));
  }
  std::sort(codes.begin(), codes.end());
  codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
  if (process.codes.size() > kMostCodes) process.codes.clear();
  look.read_codes(codes);
  PythonStacks stacks{.version = fmt::format("3.{}", process.layout.minor), .threads = {}};
  for (const auto& [thread, walk] : walks) {
    auto frames = look.describe(walk);
    if (!frames && !last) return std::nullopt;
    if (frames) stacks.threads.push_back({thread->tid, thread->holds_gil, *std::move(frames)});
  }
  if (stacks.threads.empty()) return std::nullopt;
  std::stable_partition(stacks.threads.begin(), stacks.threads.end(),
                        [&](const auto& thread) { return thread.tid == memory.pid(); });
  return stacks;
}

}  // namespace

PythonReader::PythonReader() : known_(std::make_unique<Known>()) {}
PythonReader::~PythonReader() = default;
PythonReader::PythonReader(PythonReader&&) noexcept = default;
PythonReader& PythonReader::operator=(PythonReader&&) noexcept = default;

Result<std::optional<PythonStacks>> PythonReader::read(int pid, std::size_t most_frames) {
  auto& processes = known_->processes;
  const auto now = read_process(pid);
  if (!now) {
    processes.erase(pid);
    return memory_refused(pid, ESRCH);
  }
  if (processes.size() >= kMostProcesses && !processes.contains(pid)) processes.clear();
  auto& process = processes[pid];
  if (process.started != now->started) process = PythonProcess{.started = now->started, .layout = {}, .codes = {}};
  ProcessMemory memory(pid);
  for (int attempt = 1; attempt <= kAttempts && memory.refused() == 0; ++attempt) {
    if (process.runtime == 0) {
      auto found = find_runtime(memory);
      if (!found) return found.error();
      if (!*found) return std::optional<PythonStacks>();
      if (!is_known((*found)->layout)) {
        return unavailable_error(fmt::format(
            "process {} runs Python 3.{}, whose stacks cannot be read: 3.9 to 3.15 can", pid, (*found)->layout.minor));
      }
      process = {.started = now->started, .runtime = (*found)->runtime, .layout = (*found)->layout, .codes = {}};
    }
    if (auto stacks = look_at(memory, process, most_frames, attempt == kAttempts)) return stacks;
    if (attempt % kAttemptsBeforeSearch == 0) process.runtime = 0;  // it may run another program by now
  }
  if (memory.refused() != 0) return memory_refused(pid, memory.refused());
  return unavailable_error(fmt::format("the Python stacks of process {} could not be read: they made no sense", pid));
}

}  // namespace taas
