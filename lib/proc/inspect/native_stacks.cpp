#include "proc/inspect/native_stacks.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <utility>

#include "base/fd.hpp"
#include "base/files.hpp"
#include "base/text.hpp"

namespace taas {
namespace {

constexpr std::size_t kMostOfStack = 128 * 1024;
constexpr std::size_t kPage = 4096;  // what lies beside one may not be mapped
constexpr std::size_t kMostFrames = 96;
constexpr std::size_t kInnermost = 8;

// Numbers of DWARF for x86_64 (System V ABI, AMD64 supplement, figure 3.36).
constexpr int kFramePointer = 6, kStackPointer = 7, kReturnAddress = 16, kRegisters = 17;

struct Registers {
  std::array<std::uint64_t, kRegisters> value{};
  std::array<bool, kRegisters> known{};
  void set(int number, std::uint64_t to) {
    value.at(static_cast<std::size_t>(number)) = to;
    known.at(static_cast<std::size_t>(number)) = true;
  }
};

// What is used of libdw (elfutils/libdwfl.h, libdw.h and dwarf.h, whose layouts have not changed since 0.158).

struct Dwfl;
struct DwflModule;
struct DwflThread;
struct DwflFrame;
struct DwflLine;
using Address = std::uint64_t;

struct DwflCallbacks {
  int (*find_elf)(DwflModule*, void**, const char*, Address, char**, void**);
  int (*find_debuginfo)(DwflModule*, void**, const char*, Address, const char*, const char*, std::uint32_t, char**);
  int (*section_address)(DwflModule*, void**, const char*, Address, const char*, std::uint32_t, const void*, Address*);
  char** debuginfo_path;
};

struct DwflThreadCallbacks {
  int (*next_thread)(Dwfl*, void*, void**);
  bool (*get_thread)(Dwfl*, int, void*, void**);
  bool (*memory_read)(Dwfl*, Address, Address*, void*);
  bool (*set_initial_registers)(DwflThread*, void*);
  void (*detach)(Dwfl*, void*);
  void (*thread_detach)(DwflThread*, void*);
};

struct DwarfDie {
  void* address;
  void* unit;
  void* abbreviation;
  long padding;
};

struct DwarfAttribute {
  unsigned code, form;
  unsigned char* value;
  void* unit;
};

struct ElfSymbol {  // GElf_Sym
  std::uint32_t name;
  unsigned char info, other;
  std::uint16_t section;
  std::uint64_t value, size;
};

constexpr int kGoOn = 0, kEnough = 1;  // DWARF_CB_OK, DWARF_CB_ABORT
constexpr int kInlined = 0x1d, kFunction = 0x2e;
constexpr unsigned kLinkageName = 0x6e, kCallFile = 0x58, kCallLine = 0x59;

struct Library {
  Dwfl* (*begin)(const DwflCallbacks*);
  void (*end)(Dwfl*);
  int (*report)(Dwfl*, int);
  int (*report_end)(Dwfl*, void*, void*);
  decltype(DwflCallbacks::find_elf) find_elf;
  decltype(DwflCallbacks::find_debuginfo) find_debuginfo;
  bool (*attach)(Dwfl*, void*, int, const DwflThreadCallbacks*, void*);
  int (*frames)(Dwfl*, int, int (*)(DwflFrame*, void*), void*);
  bool (*frame_pc)(DwflFrame*, Address*, bool*);
  bool (*set_registers)(DwflThread*, int, unsigned, const Address*);
  void (*set_pc)(DwflThread*, Address);
  DwflModule* (*module_at)(Dwfl*, Address);
  const char* (*module_info)(DwflModule*, void***, Address*, Address*, Address*, Address*, const char**, const char**);
  const char* (*symbol)(DwflModule*, Address, std::uint64_t*, ElfSymbol*, std::uint32_t*, void**, Address*);
  DwflLine* (*line_at)(DwflModule*, Address);
  const char* (*line_info)(DwflLine*, Address*, int*, int*, Address*, Address*);
  DwarfDie* (*unit_at)(DwflModule*, Address, Address*);
  int (*scopes)(DwarfDie*, Address, DwarfDie**);
  int (*scopes_around)(DwarfDie*, DwarfDie**);
  int (*tag)(DwarfDie*);
  const char* (*name)(DwarfDie*);
  DwarfAttribute* (*attribute)(DwarfDie*, unsigned, DwarfAttribute*);
  DwarfAttribute* (*attribute_of_origin)(DwarfDie*, unsigned, DwarfAttribute*);
  const char* (*as_text)(DwarfAttribute*);
  int (*as_number)(DwarfAttribute*, Address*);
  int (*source_files)(DwarfDie*, void**, std::size_t*);
  const char* (*source_file)(void*, std::size_t, Address*, Address*);
};

/// Whether the library has all of it.
bool fill(Library& to, void* library) {
  bool whole = true;
  auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    whole = whole && function != nullptr;
  };
  find(to.begin, "dwfl_begin");
  find(to.end, "dwfl_end");
  find(to.report, "dwfl_linux_proc_report");
  find(to.report_end, "dwfl_report_end");
  find(to.find_elf, "dwfl_linux_proc_find_elf");
  find(to.find_debuginfo, "dwfl_standard_find_debuginfo");
  find(to.attach, "dwfl_attach_state");
  find(to.frames, "dwfl_getthread_frames");
  find(to.frame_pc, "dwfl_frame_pc");
  find(to.set_registers, "dwfl_thread_state_registers");
  find(to.set_pc, "dwfl_thread_state_register_pc");
  find(to.module_at, "dwfl_addrmodule");
  find(to.module_info, "dwfl_module_info");
  find(to.symbol, "dwfl_module_addrinfo");
  find(to.line_at, "dwfl_module_getsrc");
  find(to.line_info, "dwfl_lineinfo");
  find(to.unit_at, "dwfl_module_addrdie");
  find(to.scopes, "dwarf_getscopes");
  find(to.scopes_around, "dwarf_getscopes_die");
  find(to.tag, "dwarf_tag");
  find(to.name, "dwarf_diename");
  find(to.attribute, "dwarf_attr");
  find(to.attribute_of_origin, "dwarf_attr_integrate");
  find(to.as_text, "dwarf_formstring");
  find(to.as_number, "dwarf_formudata");
  find(to.source_files, "dwarf_getsrcfiles");
  find(to.source_file, "dwarf_filesrc");
  return whole;
}

/// A part of a file that is mapped to be run.
struct Code {
  std::uint64_t start = 0, end = 0, offset = 0;
  std::string path;
};

std::vector<Code> code_of(int pid) {
  std::vector<Code> result;
  const auto maps = read_file(fmt::format("/proc/{}/maps", pid));
  std::istringstream lines(maps ? *maps : std::string());
  for (std::string line; std::getline(lines, line);) {
    Code code;
    char rights[8]{};
    int path_at = 0;
    const int fields = std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n", &code.start,
                                   &code.end, rights, &code.offset, &path_at);
    if (fields < 4 || rights[2] != 'x') continue;
    if (path_at > 0 && static_cast<std::size_t>(path_at) < line.size())
      code.path = line.substr(static_cast<std::size_t>(path_at));
    result.push_back(std::move(code));
  }
  return result;
}

/// What a function of the distribution's has no line of its own worth telling.
bool is_of_the_system(std::string_view module) {
  return module.starts_with("/usr/lib") || module.starts_with("/lib") || module.starts_with('[');
}

std::string demangled(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 && text != nullptr ? plain_name(text) : std::string(name);
  std::free(text);
  return result.substr(0, result.find('@'));  // the version of a symbol of the C library
}

// The registers of a sample in the order of the kernel (asm/perf_regs.h): AX BX CX DX SI DI BP SP IP, and R8 to R15.
constexpr std::uint64_t kSampledRegisters = 0x1ff | (0xffULL << 16);
constexpr std::array<int, kRegisters> kSampleOrder{
    0, 3, 2, 1, 4, 5, kFramePointer, kStackPointer, kReturnAddress, 8, 9, 10, 11, 12, 13, 14, 15};
constexpr std::uint32_t kSampledStack = 32 * 1024;

/// What the kernel writes first, until it has or has had time: a header and what follows it.
std::string first_record(const Fd& event) {
  constexpr std::size_t kRing = 32 * kPage;
  constexpr int kPatienceMs = 30;  // of each of many threads, of which more are ready than there are processors
  void* mapped = ::mmap(nullptr, kPage + kRing, PROT_READ | PROT_WRITE, MAP_SHARED, event.get(), 0);
  if (mapped == MAP_FAILED) return {};
  pollfd ready{event.get(), POLLIN, 0};
  std::string record;
  if (::poll(&ready, 1, kPatienceMs) > 0) {
    const auto* begin = static_cast<const char*>(mapped) + kPage;
    perf_event_header header{};
    std::memcpy(&header, begin, sizeof(header));
    if (header.type == PERF_RECORD_SAMPLE) record.assign(begin + sizeof(header), header.size - sizeof(header));
  }
  ::munmap(mapped, kPage + kRing);
  return record;
}

/// Where a thread is at a moment in which it runs. False: it did not run.
Result<bool> sample(StackSnapshot& snapshot, Registers& registers) {
  perf_event_attr wanted{};
  wanted.size = sizeof(wanted);
  wanted.type = PERF_TYPE_SOFTWARE;
  wanted.config = PERF_COUNT_SW_TASK_CLOCK;
  wanted.sample_period = 200'000;  // ns
  wanted.sample_type = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  wanted.exclude_kernel = 1;
  wanted.exclude_hv = 1;
  wanted.wakeup_events = 1;
  wanted.sample_regs_user = kSampledRegisters;
  wanted.sample_stack_user = kSampledStack;
  const Fd event(static_cast<int>(::syscall(SYS_perf_event_open, &wanted, snapshot.tid, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!event && errno == ESRCH) return false;
  if (!event) {
    return unavailable_error("where C++ code is busy is told where kernel.perf_event_paranoid is 2 or lower (sysctl)");
  }
  // The kind of registers, the registers, the room for the stack, the stack, and how much of it is real.
  const auto record = first_record(event);
  std::size_t at = 0;
  const auto next = [&] {
    std::uint64_t word = 0;
    if (at + sizeof(word) <= record.size()) std::memcpy(&word, record.data() + at, sizeof(word));
    at += sizeof(word);
    return word;
  };
  if (next() != PERF_SAMPLE_REGS_ABI_64) return false;
  for (int number : kSampleOrder) registers.set(number, next());
  const auto room = static_cast<std::size_t>(std::min<std::uint64_t>(next(), kSampledStack));
  if (at + room > record.size()) return false;
  snapshot.stack = record.substr(at, room);
  at += room;
  snapshot.stack.resize(std::min<std::size_t>(room, room == 0 ? 0 : next()));
  snapshot.stack_pointer = registers.value[kStackPointer];
  snapshot.instruction = registers.value[kReturnAddress];
  return true;
}

}  // namespace

std::optional<StackSnapshot> snapshot_stack(int pid, int tid) {
  const auto text = read_file(fmt::format("/proc/{}/task/{}/syscall", pid, tid));
  if (!text || text->empty()) return std::nullopt;
  StackSnapshot snapshot{pid, tid};
  if (text->starts_with("running")) return snapshot;
  // The last two words; before them the system call, or -1 where it is in none.
  const std::string line(trim(*text, "\n"));
  const auto last = line.rfind(' ');
  const auto before = last == std::string::npos || last == 0 ? std::string::npos : line.rfind(' ', last - 1);
  if (before == std::string::npos) return std::nullopt;
  snapshot.stack_pointer = std::strtoull(line.c_str() + before + 1, nullptr, 16);
  snapshot.instruction = std::strtoull(line.c_str() + last + 1, nullptr, 16);
  if (snapshot.instruction == 0) return std::nullopt;
  std::string stack(kMostOfStack, '\0');
  std::size_t got = 0;
  while (got < stack.size()) {
    const auto at = snapshot.stack_pointer + got;
    const auto length = std::min(kPage - at % kPage, stack.size() - got);
    iovec here{stack.data() + got, length}, there{reinterpret_cast<void*>(at), length};
    if (::process_vm_readv(pid, &here, 1, &there, 1, 0) != static_cast<ssize_t>(length)) break;
    got += length;
  }
  if (got == 0) return std::nullopt;
  stack.resize(got);
  snapshot.stack = std::move(stack);
  return snapshot;
}

std::string plain_name(std::string_view text) {
  constexpr std::string_view kOperator = "operator", kUnnamed = "(anonymous namespace)::", kLambda = "{lambda";
  std::string name;
  int angles = 0;
  bool is_operator = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto rest = text.substr(i);
    if (rest.starts_with(kUnnamed)) {
      i += kUnnamed.size() - 1;
    } else if (angles == 0 && rest.starts_with(kOperator) && (name.empty() || name.ends_with(':'))) {
      // Its symbol may have any of the characters that mean something else elsewhere.
      const auto symbol = rest.substr(kOperator.size());
      const auto end = symbol.starts_with("()") ? std::size_t{2} : symbol.find('(');
      is_operator = true;
      name += rest.substr(0, end == symbol.npos ? end : kOperator.size() + end);
      i += end == symbol.npos ? rest.size() : kOperator.size() + end - 1;
    } else if (angles == 0 && rest.starts_with(kLambda)) {
      const auto end = rest.find('}');
      name += "{lambda}";
      i += end == rest.npos ? rest.size() : end;
    } else if (text[i] == '<') {
      ++angles;
    } else if (text[i] == '>') {
      --angles;
    } else if (angles == 0 && text[i] == '(') {
      break;
    } else if (angles == 0 && text[i] == ' ' && !is_operator) {
      name.clear();  // it was the return type
    } else if (angles == 0) {
      name += text[i];
    }
  }
  constexpr std::string_view kCalled = "{lambda}::operator()";
  if (name.ends_with(kCalled)) name.resize(name.size() - std::string_view("::operator()").size());
  return name;
}

struct NativeReader::State {
  Library call{};

  /// One process. What is read of its files is kept for its other threads.
  struct Process {
    Dwfl* dwfl = nullptr;
    std::vector<Code> code;
    DwflCallbacks callbacks{};
    char* no_path = nullptr;
  };
  std::map<int, Process> processes;
  std::map<std::pair<std::string, Address>, std::vector<NativeFrame>> places;  // by file, and where in it
  std::map<std::string, bool> large;                                           // files

  // Of the thread that is read.
  StackSnapshot snapshot;
  Registers registers;
  std::vector<Address> counters;  // of its frames, in the middle of the instructions that call

  ~State() {
    for (auto& [pid, process] : processes) call.end(process.dwfl);
  }

  static int next_thread(Dwfl*, void* self, void** thread) {
    if (*thread != nullptr) return 0;
    *thread = self;
    return static_cast<State*>(self)->snapshot.tid;
  }
  static bool get_thread(Dwfl*, int, void* self, void** thread) {
    *thread = self;
    return true;
  }
  static bool read_memory(Dwfl*, Address address, Address* word, void* self) {
    const auto found = static_cast<State*>(self)->stack_word(address);
    if (found) *word = *found;
    return found.has_value();
  }
  static bool set_registers(DwflThread* thread, void* self) {
    const auto& [call, registers] = std::tie(static_cast<State*>(self)->call, static_cast<State*>(self)->registers);
    for (std::size_t i = 0; i < kRegisters; ++i) {
      if (registers.known.at(i)) call.set_registers(thread, static_cast<int>(i), 1, &registers.value.at(i));
    }
    call.set_pc(thread, registers.value[kReturnAddress]);
    return true;
  }
  static int on_frame(DwflFrame* frame, void* self) {
    auto& state = *static_cast<State*>(self);
    Address counter = 0;
    bool is_exact = false;
    if (!state.call.frame_pc(frame, &counter, &is_exact)) return kEnough;
    state.counters.push_back(is_exact ? counter : counter - 1);
    return state.counters.size() < kMostFrames ? kGoOn : kEnough;
  }
  /// Debug information in files of its own is looked for only for what the user has built.
  static int find_debuginfo(DwflModule* module, void** data, const char* name, Address base, const char* file,
                            const char* link, std::uint32_t checksum, char** found) {
    if (file != nullptr && is_of_the_system(file)) return -1;
    return standard_debuginfo(module, data, name, base, file, link, checksum, found);
  }
  static inline decltype(DwflCallbacks::find_debuginfo) standard_debuginfo = nullptr;

  [[nodiscard]] std::optional<std::uint64_t> stack_word(Address address) const {
    if (address < snapshot.stack_pointer) return std::nullopt;
    const auto at = address - snapshot.stack_pointer;
    std::uint64_t word = 0;
    if (at > snapshot.stack.size() || snapshot.stack.size() - at < sizeof(word)) return std::nullopt;
    std::memcpy(&word, snapshot.stack.data() + at, sizeof(word));
    return word;
  }

  Process* open(int pid) {
    const auto known = processes.find(pid);
    if (known != processes.end()) return &known->second;
    static const DwflThreadCallbacks kThreads{next_thread, get_thread, read_memory, set_registers, nullptr, nullptr};
    auto& process = processes[pid];
    process.callbacks = {call.find_elf, find_debuginfo, nullptr, &process.no_path};
    process.dwfl = call.begin(&process.callbacks);
    const bool told = process.dwfl != nullptr && call.report(process.dwfl, pid) == 0 &&
                      call.report_end(process.dwfl, nullptr, nullptr) == 0 &&
                      call.attach(process.dwfl, nullptr, pid, &kThreads, this);
    if (told) {
      process.code = code_of(pid);
      return &process;
    }
    if (process.dwfl != nullptr) call.end(process.dwfl);
    processes.erase(pid);
    return nullptr;
  }

  void unwind(Process& process) {
    counters.clear();
    call.frames(process.dwfl, snapshot.tid, on_frame, this);
  }

  /// The ELF symbol there, and where it begins.
  std::pair<const char*, Address> symbol_at(Process& process, Address address) const {
    auto* module = call.module_at(process.dwfl, address);
    std::uint64_t offset = 0;
    ElfSymbol symbol{};
    const char* name =
        module == nullptr ? nullptr : call.symbol(module, address, &offset, &symbol, nullptr, nullptr, nullptr);
    return {name, address - offset};
  }

  /// Whether the stack has been followed to where threads begin.
  bool is_whole(Process& process) const {
    constexpr std::array<std::string_view, 6> kBegins{"_start",   "__libc_start", "clone",
                                                      "__clone3", "start_thread", "__clone"};
    const char* name = counters.empty() ? nullptr : symbol_at(process, counters.back()).first;
    return name != nullptr && std::ranges::any_of(kBegins, [=](std::string_view begin) {
             return std::string_view(name).starts_with(begin);
           });
  }

  /// Whether a call of this function, or one through a pointer or of another library, returns to that address.
  bool may_return_from(const Process& process, Address function, Address to) const {
    const auto code =
        std::ranges::find_if(process.code, [=](const Code& one) { return one.start + 8 <= to && to < one.end; });
    if (code == process.code.end() || code->path.empty()) return false;
    std::array<unsigned char, 8> before{};
    const Fd file(::open(code->path.c_str(), O_RDONLY | O_CLOEXEC));
    const auto at = static_cast<off_t>(code->offset + (to - before.size() - code->start));
    if (::pread(file.get(), before.data(), before.size(), at) != static_cast<ssize_t>(before.size())) return false;
    if (before[3] == 0xe8) {
      std::int32_t distance = 0;
      std::memcpy(&distance, &before[4], sizeof(distance));
      const auto target = to + static_cast<Address>(static_cast<std::int64_t>(distance));
      return target == function || !(code->start <= function && function < code->end);
    }
    const auto calls_by_pointer = [&](std::size_t length) {
      const auto* bytes = &before.at(before.size() - length);
      return bytes[0] == 0xff && (bytes[1] & 0x38) == 0x10;
    };
    return calls_by_pointer(2) || calls_by_pointer(3) || calls_by_pointer(6) || calls_by_pointer(7);
  }

  /// /proc tells where a thread is and its stack pointer, not its frame pointer, which programs built without
  /// optimisation need. What it is, is in the stack, beside the address that the function returns to: the first place
  /// from which the stack can be followed to its begin.
  void guess_frame_pointer(Process& process) {
    constexpr std::size_t kMostTries = 64;
    const auto without = counters;
    const auto function = symbol_at(process, without.back()).second;
    std::size_t tries = 0;
    for (std::size_t at = 0; at + 16 <= snapshot.stack.size() && tries < kMostTries; at += 8) {
      const auto place = snapshot.stack_pointer + at;
      const auto returns_to = stack_word(place + 8);
      if (!returns_to || !may_return_from(process, function, *returns_to)) continue;
      ++tries;
      registers.set(kFramePointer, place);
      unwind(process);
      if (counters.size() > without.size() && is_whole(process)) return;
    }
    registers.known[kFramePointer] = false;
    counters = without;
  }

  [[nodiscard]] std::string source_of_call(DwarfDie* unit, DwarfDie* scope, int& line) const {
    DwarfAttribute attribute{};
    Address number = 0;
    line = 0;
    auto* found = call.attribute(scope, kCallLine, &attribute);
    if (found != nullptr && call.as_number(found, &number) == 0) line = static_cast<int>(number);
    found = call.attribute(scope, kCallFile, &attribute);
    void* files = nullptr;
    std::size_t count = 0;
    const bool told = found != nullptr && call.as_number(found, &number) == 0 &&
                      call.source_files(unit, &files, &count) == 0 && number < count;
    const char* file = told ? call.source_file(files, static_cast<std::size_t>(number), nullptr, nullptr) : nullptr;
    return file == nullptr ? std::string() : std::string(file);
  }

  std::string name_of(DwarfDie* scope) const {
    DwarfAttribute attribute{};
    auto* linkage = call.attribute_of_origin(scope, kLinkageName, &attribute);
    const char* name = linkage == nullptr ? nullptr : call.as_text(linkage);
    if (name == nullptr) name = call.name(scope);
    return name == nullptr ? std::string() : demangled(name);
  }

  struct Place {
    DwflModule* module = nullptr;
    std::string file;
    Address start = 0;
  };
  Place place_of(Process& process, Address address) const {
    Place place;
    place.module = call.module_at(process.dwfl, address);
    if (place.module == nullptr) return place;
    const char* main_file = nullptr;
    const char* name =
        call.module_info(place.module, nullptr, &place.start, nullptr, nullptr, nullptr, &main_file, nullptr);
    place.file = main_file != nullptr ? main_file : name != nullptr ? name : "";
    return place;
  }

  /// Where a name costs milliseconds, since libdw looks through all symbols of a file for each.
  bool is_large(const std::string& file) {
    constexpr std::uintmax_t kLarge = std::uintmax_t{32} << 20;
    std::error_code failed;
    auto [known, is_new] = large.try_emplace(file);
    const bool is_library = contains(file, ".so");  // and not the user's program, however large it is with -g
    if (is_new) known->second = is_library && std::filesystem::file_size(file, failed) >= kLarge && !failed;
    return known->second;
  }

  /// All frames have names but those of large libraries, of which only what other code calls has one, and what a thread
  /// waits in. The same place of a file is in all ranks of a program: it is looked up once.
  std::vector<NativeFrame> name_frames(Process& process, bool is_sample) {
    std::vector<Place> where;
    for (Address address : counters) where.push_back(place_of(process, address));
    std::vector<NativeFrame> frames;
    for (std::size_t i = 0; i < where.size(); ++i) {
      const auto& [module, file, start] = where[i];
      if (module == nullptr) continue;
      const bool waits_in = !is_sample && i < kInnermost;
      const bool is_called = i + 1 == where.size() || !is_large(where[i + 1].file);
      if (is_large(file) && !waits_in && !is_called) {
        frames.push_back({{}, {}, 0, file});
        continue;
      }
      auto [known, is_new] = places.try_emplace({file, counters[i] - start});
      if (is_new) look_up(process, module, file, counters[i], known->second);
      frames.insert(frames.end(), known->second.begin(), known->second.end());
    }
    return frames;
  }

  /// The function at an address, and those that the compiler put into it there, innermost first.
  void look_up(Process& process, DwflModule* module, const std::string& path, Address address,
               std::vector<NativeFrame>& frames) const {
    NativeFrame frame;
    frame.module = path;
    if (const char* symbol = symbol_at(process, address).first; symbol != nullptr) frame.function = demangled(symbol);
    auto* line = is_of_the_system(frame.module) ? nullptr : call.line_at(module, address);
    const char* file =
        line == nullptr ? nullptr : call.line_info(line, nullptr, &frame.line, nullptr, nullptr, nullptr);
    if (file == nullptr) return frames.push_back(std::move(frame));
    frame.file = file;
    Address bias = 0;
    auto* unit = call.unit_at(module, address, &bias);
    // The first answer has where an inlined function was written behind it, the second where it was put.
    DwarfDie *innermost = nullptr, *scopes = nullptr;
    const bool known = unit != nullptr && call.scopes(unit, address - bias, &innermost) > 0;
    const int count = known ? call.scopes_around(innermost, &scopes) : 0;
    std::free(innermost);
    for (int i = 0; i < count; ++i) {
      if (call.tag(&scopes[i]) == kFunction) break;
      if (call.tag(&scopes[i]) != kInlined) continue;
      auto inlined = frame;
      inlined.function = name_of(&scopes[i]);
      frames.push_back(std::move(inlined));
      frame.file = source_of_call(unit, &scopes[i], frame.line);
    }
    std::free(scopes);
    frames.push_back(std::move(frame));
  }

  Result<std::vector<NativeFrame>> read() {
    std::vector<NativeFrame> frames;
    auto* process = open(snapshot.pid);
    if (process == nullptr) return frames;
    registers = {};
    const bool is_sample = snapshot.instruction == 0;
    if (is_sample) {
      auto sampled = sample(snapshot, registers);
      if (!sampled) return sampled.error();
      if (!*sampled) return frames;
    } else {
      registers.set(kStackPointer, snapshot.stack_pointer);
      registers.set(kReturnAddress, snapshot.instruction);
    }
    unwind(*process);
    if (counters.empty()) return frames;
    if (!registers.known[kFramePointer] && !is_whole(*process)) guess_frame_pointer(*process);
    return name_frames(*process, is_sample);
  }
};

NativeReader::NativeReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
NativeReader::~NativeReader() = default;
NativeReader::NativeReader(NativeReader&&) noexcept = default;
NativeReader& NativeReader::operator=(NativeReader&&) noexcept = default;

Result<NativeReader> NativeReader::load() {
#if defined(__x86_64__)
  ::unsetenv("DEBUGINFOD_URLS");  // else it would ask servers for what is not there
  void* library = ::dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return unavailable_error("lines of C++ code are told by libdw (package libdw1 or elfutils-libs)");
  auto state = std::make_unique<State>();
  if (!fill(state->call, library))
    return unavailable_error("lines of C++ code are told by a newer libdw than the one that is installed");
  State::standard_debuginfo = state->call.find_debuginfo;
  return NativeReader(std::move(state));
#else
  return unavailable_error("lines of C++ code are told on x86_64 alone");
#endif
}

Result<std::vector<NativeFrame>> NativeReader::read(StackSnapshot snapshot) {
  state_->snapshot = std::move(snapshot);
  return state_->read();
}

}  // namespace taas
