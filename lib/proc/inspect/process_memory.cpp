#include "proc/inspect/process_memory.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/fd.hpp"
#include "base/files.hpp"

namespace taas {
namespace {

constexpr std::size_t kPiecesAtOnce = 512;  // IOV_MAX is 1024
constexpr std::uint64_t kSmallestPage = 4096;
constexpr std::uint64_t kMostOfImage = 1ULL << 32;
constexpr std::size_t kMostDynamicEntries = 256;
constexpr std::uint32_t kMostOfChain = 4096;

/// "7f12a000-7f12b000 r--p 00000000 fe:00 1234    /usr/lib/libc.so.6"
std::optional<MappedFile> parse_mapping(std::string_view line) {
  MappedFile file;
  auto field = [&] {
    auto end = std::min(line.find(' '), line.size());
    auto word = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    return word;
  };
  auto range = field();
  field();  // permissions
  auto offset = field();
  field();  // device
  auto inode = field();
  if (inode == "0" || offset.find_first_not_of('0') != offset.npos) return std::nullopt;
  std::from_chars(range.data(), range.data() + range.size(), file.start, 16);
  file.path = line.substr(std::min(line.find_first_not_of(' '), line.size()));
  return file;
}

std::uint32_t gnu_hash(std::string_view name) {
  std::uint32_t hash = 5381;
  for (char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

/// The dynamic symbols of a loaded file, by the table that the dynamic linker itself looks them up in (DT_GNU_HASH).
class DynamicSymbols {
 public:
  DynamicSymbols(ProcessMemory& memory, std::uint64_t start) : memory_(memory), start_(start) {}

  bool open() {
    auto dynamic = find_dynamic();
    if (!dynamic) return false;
    std::vector<std::byte> entries(std::min<std::size_t>(dynamic->p_memsz, kMostDynamicEntries * sizeof(Elf64_Dyn)));
    if (!memory_.read(bias_ + dynamic->p_vaddr, entries)) return false;
    for (std::size_t at = 0; at + sizeof(Elf64_Dyn) <= entries.size(); at += sizeof(Elf64_Dyn)) {
      auto entry = load<Elf64_Dyn>(entries, at);
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_SYMTAB) symbols_ = place(entry.d_un.d_ptr);
      if (entry.d_tag == DT_STRTAB) strings_ = place(entry.d_un.d_ptr);
      if (entry.d_tag == DT_GNU_HASH) hashes_ = place(entry.d_un.d_ptr);
    }
    if (symbols_ == 0 || strings_ == 0 || hashes_ == 0) return false;
    auto header = memory_.read_value<std::array<std::uint32_t, 4>>(hashes_);
    if (!header) return false;
    std::tie(buckets_, first_, bloom_words_, bloom_shift_) =
        std::tuple{(*header)[0], (*header)[1], (*header)[2], (*header)[3]};
    return buckets_ != 0 && bloom_words_ != 0;
  }

  std::uint64_t find(std::string_view name) {
    const auto hash = gnu_hash(name);
    const auto bloom = hashes_ + 16;
    auto word = memory_.read_value<std::uint64_t>(bloom + 8ULL * ((hash / 64) % bloom_words_));
    if (!word || (*word >> (hash % 64) & 1) == 0 || (*word >> ((hash >> (bloom_shift_ % 32)) % 64) & 1) == 0) return 0;
    const auto bucket = bloom + 8ULL * bloom_words_;
    auto symbol = memory_.read_value<std::uint32_t>(bucket + 4ULL * (hash % buckets_));
    if (!symbol || *symbol < first_) return 0;
    const auto chain = bucket + 4ULL * buckets_;
    for (std::uint32_t step = 0; step < kMostOfChain; ++step) {
      auto other = memory_.read_value<std::uint32_t>(chain + 4ULL * (*symbol - first_ + step));
      if (!other) return 0;
      if ((*other | 1) == (hash | 1)) {
        if (auto address = address_of(*symbol + step, name)) return address;
      }
      if (*other & 1) return 0;  // the last of this bucket
    }
    return 0;
  }

 private:
  std::optional<Elf64_Phdr> find_dynamic() {
    std::array<std::byte, 1024> head;  // the first page is mapped
    if (!memory_.read(start_, head)) return std::nullopt;
    auto elf = load<Elf64_Ehdr>(head, 0);
    bool readable = std::memcmp(elf.e_ident, ELFMAG, SELFMAG) == 0 && elf.e_ident[EI_CLASS] == ELFCLASS64 &&
                    elf.e_phentsize == sizeof(Elf64_Phdr);
    if (!readable) return std::nullopt;
    std::optional<Elf64_Phdr> dynamic;
    for (std::size_t i = 0; i < elf.e_phnum; ++i) {
      auto header = load<Elf64_Phdr>(head, elf.e_phoff + i * sizeof(Elf64_Phdr));
      if (header.p_type == PT_DYNAMIC) dynamic = header;
      if (header.p_type != PT_LOAD) continue;
      if (header.p_offset == 0) bias_ = start_ - header.p_vaddr / kSmallestPage * kSmallestPage;
      image_ = std::max(image_, header.p_vaddr + header.p_memsz);
    }
    return dynamic;
  }

  /// glibc has made addresses of what the file has as offsets, musl has not.
  [[nodiscard]] std::uint64_t place(std::uint64_t pointer) const {
    return pointer >= start_ && pointer - bias_ < std::min(image_, kMostOfImage) ? pointer : bias_ + pointer;
  }

  std::uint64_t address_of(std::uint32_t index, std::string_view name) {
    auto symbol = memory_.read_value<Elf64_Sym>(symbols_ + index * sizeof(Elf64_Sym));
    if (!symbol || symbol->st_shndx == SHN_UNDEF) return 0;
    std::vector<std::byte> text(name.size() + 1);
    if (!memory_.read(strings_ + symbol->st_name, text)) return 0;
    bool same = std::memcmp(text.data(), name.data(), name.size()) == 0 && text.back() == std::byte{0};
    return same ? bias_ + symbol->st_value : 0;
  }

  ProcessMemory& memory_;
  std::uint64_t start_;
  std::uint64_t bias_ = 0;  ///< of addresses in memory to those in the file
  std::uint64_t image_ = 0;
  std::uint64_t symbols_ = 0;
  std::uint64_t strings_ = 0;
  std::uint64_t hashes_ = 0;
  std::uint32_t buckets_ = 0;
  std::uint32_t first_ = 0;
  std::uint32_t bloom_words_ = 0;
  std::uint32_t bloom_shift_ = 0;
};

/// Marks the pieces that these bytes fill; returns how many.
std::size_t mark_read(std::span<ProcessMemory::Piece> pieces, std::size_t bytes) {
  std::size_t done = 0;
  for (; done < pieces.size() && pieces[done].to.size() <= bytes; ++done) {
    bytes -= pieces[done].to.size();
    pieces[done].read = true;
  }
  return done;
}

}  // namespace

void ProcessMemory::read(std::span<Piece> pieces) {
  std::array<iovec, kPiecesAtOnce> here;
  std::array<iovec, kPiecesAtOnce> there;
  while (!pieces.empty() && refused_ == 0) {
    const auto count = std::min(pieces.size(), kPiecesAtOnce);
    for (std::size_t i = 0; i < count; ++i) {
      here[i] = {pieces[i].to.data(), pieces[i].to.size()};
      there[i] = {reinterpret_cast<void*>(pieces[i].address), pieces[i].to.size()};
    }
    const auto bytes = ::process_vm_readv(pid_, here.data(), count, there.data(), count, 0);
    if (bytes < 0 && (errno == EPERM || errno == ESRCH || errno == ENOSYS)) refused_ = errno;
    const auto done = mark_read(pieces.first(count), bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
    // The call ends at the first piece that is not mapped: that one is left out.
    pieces = pieces.subspan(std::min(done < count ? done + 1 : done, pieces.size()));
  }
}

bool ProcessMemory::read(std::uint64_t address, std::span<std::byte> to) {
  Piece piece{.address = address, .to = to};
  read(std::span(&piece, 1));
  return piece.read;
}

Error memory_refused(int pid, int system_errno) {
  if (system_errno == ESRCH || system_errno == ENOENT)
    return unavailable_error(fmt::format("process {} has ended", pid));
  auto error = system_error(fmt::format("cannot read the memory of process {}", pid), system_errno);
  if (system_errno == ENOSYS) return error;
  struct stat owner {};
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &owner) == 0 && owner.st_uid != ::geteuid() && ::geteuid() != 0) {
    error.message += fmt::format(": it is of user {}; run as that user, or with CAP_SYS_PTRACE", owner.st_uid);
    return error;
  }
  auto scope = read_file("/proc/sys/kernel/yama/ptrace_scope");
  if (scope && !scope->starts_with('0')) {
    error.message += ": kernel.yama.ptrace_scope is " + scope->substr(0, scope->find('\n')) +
                     "; set it to 0, or run with CAP_SYS_PTRACE";
  } else {
    error.message += ": run with CAP_SYS_PTRACE; a container's seccomp profile may forbid process_vm_readv";
  }
  return error;
}

Result<> visit_mapped_files(int pid, const std::function<bool(const MappedFile&)>& visit) {
  Fd maps(::open(fmt::format("/proc/{}/maps", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!maps) return memory_refused(pid, errno);
  std::array<char, 1 << 16> buffer;
  std::size_t held = 0;
  for (;;) {
    auto count = ::read(maps.get(), buffer.data() + held, buffer.size() - held);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return memory_refused(pid, errno);
    if (count == 0) return {};
    std::string_view text(buffer.data(), held + static_cast<std::size_t>(count));
    for (auto end = text.find('\n'); end != text.npos; end = text.find('\n')) {
      auto file = parse_mapping(text.substr(0, end));
      if (file && !visit(*file)) return {};
      text.remove_prefix(end + 1);
    }
    held = text.size() < buffer.size() ? text.size() : 0;
    std::memmove(buffer.data(), text.data(), held);
  }
}

std::vector<std::uint64_t> find_symbols(ProcessMemory& memory, std::uint64_t start,
                                        std::span<const std::string_view> names) {
  std::vector<std::uint64_t> addresses(names.size());
  DynamicSymbols symbols(memory, start);
  if (!symbols.open()) return addresses;
  std::transform(names.begin(), names.end(), addresses.begin(), [&](auto name) { return symbols.find(name); });
  return addresses;
}

}  // namespace taas
