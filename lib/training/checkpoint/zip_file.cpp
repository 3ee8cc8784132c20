#include "training/checkpoint/zip_file.hpp"

#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "taas/error.hpp"
#include "training/checkpoint/crc32.hpp"

// The numbers are those of APPNOTE.TXT, PKWARE's description of zip files.

namespace taas {
namespace {

using std::string_view_literals::operator""sv;

constexpr auto kLocalHeader = "PK\x03\x04"sv, kEntry = "PK\x01\x02"sv, kEnd = "PK\x05\x06"sv;
constexpr auto kWideEnd = "PK\x06\x06"sv, kWideEndLocator = "PK\x06\x07"sv;
constexpr std::size_t kLocalHeaderBytes = 30, kEntryBytes = 46, kEndBytes = 22;
constexpr std::size_t kWideEndBytes = 56, kWideEndLocatorBytes = 20;
constexpr std::size_t kLongestComment = 0xffff;
constexpr std::uint64_t kMostDirectoryBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kWide = 0xffffffff;  // the number is in an extra field of 64 bits
constexpr std::uint64_t kWideField = 1;
constexpr std::size_t kChunk = std::size_t{1} << 20;

[[noreturn]] void broken_zip(const std::string& what) { throw std::runtime_error("zip: " + what); }

/// A little-endian number in a part of a file.
template <std::size_t kBytes>
std::uint64_t number(std::string_view bytes, std::size_t at) {
  if (at + kBytes > bytes.size()) broken_zip("a header is cut off");
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, kBytes);
  return value;
}

/// The numbers of an entry that do not fit into 32 bits, in their order.
void widen(std::string_view extra, std::initializer_list<std::uint64_t*> numbers) {
  std::string_view wide;
  while (extra.size() >= 4) {
    const auto size = number<2>(extra, 2);
    if (number<2>(extra, 0) == kWideField) wide = extra.substr(4, size);
    extra.remove_prefix(std::min<std::size_t>(extra.size(), 4 + size));
  }
  std::size_t at = 0;
  for (auto* value : numbers) {
    if (*value != kWide) continue;
    *value = number<8>(wide, at);
    at += 8;
  }
}

/// Reads in pieces, each of which is checked while it is in the cache.
template <class Read>
std::uint32_t crc_of_pieces(std::size_t bytes, Read&& read) {
  const auto pieces = (bytes + kChunk - 1) / kChunk;
  std::vector<std::uint32_t> crcs(pieces);
  at::parallel_for(0, static_cast<std::int64_t>(pieces), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      crcs[i] = read(i * kChunk, std::min(kChunk, bytes - i * kChunk));
    }
  });
  std::uint32_t crc = 0;
  for (std::size_t i = 0; i < pieces; ++i) crc = combined_crc32(crc, crcs[i], std::min(kChunk, bytes - i * kChunk));
  return crc;
}

}  // namespace

OpenedFile::OpenedFile(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  struct stat status {};
  const bool failed = !fd_ || ::fstat(fd_.get(), &status) != 0;
  const int cause = failed ? errno : S_ISDIR(status.st_mode) ? EISDIR : S_ISREG(status.st_mode) ? 0 : ESPIPE;
  if (cause != 0) throw CheckpointError("cannot read " + path + ": " + std::generic_category().message(cause));
  size_ = static_cast<std::uint64_t>(status.st_size);
}

void OpenedFile::check_range(std::uint64_t offset, std::uint64_t bytes) const {
  if (offset > size_ || bytes > size_ - offset) throw std::runtime_error("the file ends before what it announces");
}

void OpenedFile::read(std::uint64_t offset, void* place, std::size_t bytes) const {
  check_range(offset, bytes);
  auto* at = static_cast<char*>(place);
  while (bytes > 0) {
    const auto count = ::pread(fd_.get(), at, bytes, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw std::system_error(errno, std::generic_category(), "read");
    if (count == 0) throw std::runtime_error("the file became shorter while it was read");
    at += count;
    offset += static_cast<std::uint64_t>(count);
    bytes -= static_cast<std::size_t>(count);
  }
}

std::string OpenedFile::text(std::uint64_t offset, std::size_t bytes) const {
  check_range(offset, bytes);
  std::string text(bytes, '\0');
  read(offset, text.data(), bytes);
  return text;
}

at::DataPtr OpenedFile::map(std::uint64_t offset, std::size_t bytes) {
  check_range(offset, bytes);
  if (bytes == 0) return {nullptr, at::kCPU};
  if (!mapping_) {
    auto* memory = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd_.get(), 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    mapping_ = {memory, [size = size_](void* mapped) { ::munmap(mapped, size); }};
  }
  using Owner = std::shared_ptr<void>;
  return {static_cast<char*>(mapping_.get()) + offset, new Owner(mapping_),
          [](void* owner) { delete static_cast<Owner*>(owner); }, at::kCPU};
}

ZipFile::ZipFile(const std::string& path, const ReadOptions& options) : path_(path), file_(path), options_(options) {
  read_directory();
}

/// At the end, before a comment of any length; beyond 4 GiB its numbers are in a record before that.
ZipFile::Directory ZipFile::find_directory() const {
  const auto most = std::min<std::uint64_t>(file_.size(), kEndBytes + kLongestComment);
  const auto begin = file_.size() - most;
  const auto tail = file_.text(begin, most);
  const auto at = tail.rfind(kEnd);
  if (at == tail.npos || at + kEndBytes > tail.size()) broken_zip("no end of the archive");
  const std::string_view end = std::string_view(tail).substr(at);
  Directory found{number<4>(end, 16), number<4>(end, 12), number<2>(end, 10)};
  if (begin + at >= kWideEndLocatorBytes) {
    const auto locator = file_.text(begin + at - kWideEndLocatorBytes, kWideEndLocatorBytes);
    if (locator.starts_with(kWideEndLocator)) {
      const auto wide = file_.text(number<8>(locator, 8), kWideEndBytes);
      if (!wide.starts_with(kWideEnd)) broken_zip("no wide end of the archive");
      found = {number<8>(wide, 48), number<8>(wide, 40), number<8>(wide, 32)};
    }
  }
  if (found.bytes > kMostDirectoryBytes) broken_zip("a list of records that is too long");
  return found;
}

void ZipFile::read_directory() {
  const auto directory = find_directory();
  const auto list = file_.text(directory.offset, directory.bytes);
  digest_ = crc32(list.data(), list.size());
  std::string_view rest = list;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    if (!rest.starts_with(kEntry)) broken_zip("no entry");
    const auto name_bytes = number<2>(rest, 28), extra_bytes = number<2>(rest, 30), comment_bytes = number<2>(rest, 32);
    if (kEntryBytes + name_bytes + extra_bytes + comment_bytes > rest.size()) broken_zip("an entry is cut off");
    const auto name = rest.substr(kEntryBytes, name_bytes);
    auto stored = number<4>(rest, 20), size = number<4>(rest, 24), header = number<4>(rest, 42);
    widen(rest.substr(kEntryBytes + name_bytes, extra_bytes), {&size, &stored, &header});
    if (number<2>(rest, 10) != 0 || stored != size) broken_zip("a record is compressed");
    const Record record{begin_of(header, name), size, static_cast<std::uint32_t>(number<4>(rest, 16))};
    const auto slash = name.find('/');  // the folder has the name that the file had when it was written
    const std::string inner(slash == name.npos ? name : name.substr(slash + 1));
    if (!records_.emplace(inner, record).second) broken_zip("two records of one name");
    rest.remove_prefix(kEntryBytes + name_bytes + extra_bytes + comment_bytes);
  }
}

/// Where the bytes begin, after a header that has to be of this record.
std::uint64_t ZipFile::begin_of(std::uint64_t header, std::string_view name) const {
  const auto local = file_.text(header, kLocalHeaderBytes + name.size());
  if (!local.starts_with(kLocalHeader) || number<2>(local, 26) != name.size() || !local.ends_with(name)) {
    broken_zip("an entry does not lead to its record");
  }
  return header + local.size() + number<2>(local, 28);
}

const ZipFile::Record& ZipFile::record(const std::string& name) const {
  const auto found = records_.find(name);
  if (found == records_.end()) broken_zip("no record " + name);
  return found->second;
}

void ZipFile::check(const std::string& name, std::uint32_t crc) const {
  if (crc == record(name).crc) return;
  throw CheckpointError(path_ + " is damaged: the bytes of its record " + name +
                        " are not those that were written, by their CRC-32; give another file (one that was saved "
                        "without checksums is read with LoadOptions{.check = false})");
}

std::string ZipFile::text(const std::string& name) const {
  const auto& found = record(name);
  auto text = file_.text(found.offset, found.size);
  if (options_.check) check(name, crc32(text.data(), text.size()));
  return text;
}

at::DataPtr ZipFile::memory(const std::string& name) {
  const auto& found = record(name);
  if (options_.mapped) {
    auto data = file_.map(found.offset, found.size);
    const auto* bytes = static_cast<const char*>(data.get());
    if (options_.check) {
      check(name, crc_of_pieces(found.size, [&](auto at, auto size) { return crc32(bytes + at, size); }));
    }
    return data;
  }
  if (found.size > file_.size()) broken_zip("a record is longer than the file");
  auto data = c10::GetDefaultCPUAllocator()->allocate(found.size);
  auto* bytes = static_cast<char*>(data.get());
  const auto crc = crc_of_pieces(found.size, [&](auto at, auto size) {
    file_.read(found.offset + at, bytes + at, size);
    return options_.check ? crc32(bytes + at, size) : 0;
  });
  if (options_.check) check(name, crc);
  return data;
}

}  // namespace taas
