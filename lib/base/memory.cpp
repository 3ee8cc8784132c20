#include "base/memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace taas {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr int kSeals = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;

Error no_memory(std::size_t bytes, int status) {
  return system_error(fmt::format("no memory for {:.1f} MB", static_cast<double>(bytes) / 1e6), status);
}

/// Writes to a byte of every page where the kernel cannot populate (before Linux 5.14).
void touch(std::span<std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += 4096) {
    auto* page = reinterpret_cast<volatile unsigned char*>(&bytes[at]);
    *page = *page;
  }
}

/// An error is memory that is not there: a first access would have ended in a signal.
int populate(std::span<std::byte> bytes) {
  ::madvise(bytes.data(), bytes.size(), MADV_HUGEPAGE);
  if (::madvise(bytes.data(), bytes.size(), MADV_POPULATE_WRITE) == 0) return 0;
  if (errno != EINVAL) return errno;
  touch(bytes);
  return 0;
}

Result<std::span<std::byte>> map_pages(std::size_t bytes, int protection, int flags, int fd) {
  void* address = ::mmap(nullptr, bytes, protection, flags, fd, 0);
  if (address == MAP_FAILED) return no_memory(bytes, errno);
  return std::span(static_cast<std::byte*>(address), bytes);
}

/// Own memory that begins at a huge page's border.
Result<std::span<std::byte>> map_aligned(std::size_t bytes) {
  const auto whole = map_pages(bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (!whole) return whole.error();
  const auto past = reinterpret_cast<std::uintptr_t>(whole->data()) % kHugePage;
  const auto front = past == 0 ? 0 : kHugePage - past;
  if (front > 0) ::munmap(whole->data(), front);
  ::munmap(whole->data() + front + bytes, kHugePage - front);
  return whole->subspan(front, bytes);
}

}  // namespace

Mapping::Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

Result<Mapping> Mapping::of_own_memory(std::size_t bytes) {
  const auto pages = bytes >= kHugePage ? map_aligned(bytes)
                                        : map_pages(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (!pages) return pages.error();
  Mapping mapping(*pages);
  if (const int status = populate(*pages)) return no_memory(bytes, status);
  return mapping;
}

Result<Mapping> Mapping::of(const Fd& memory, std::size_t bytes) {
  const auto pages = map_pages(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get());
  if (!pages) return pages.error();
  Mapping mapping(*pages);
  if (const int status = populate(*pages)) return no_memory(bytes, status);
  return mapping;
}

Result<Mapping> Mapping::to_read(const Fd& memory, std::size_t bytes) {
  const auto pages = map_pages(bytes, PROT_READ, MAP_SHARED, memory.get());
  if (!pages) return pages.error();
  return Mapping(*pages);
}

Result<Fd> make_shared_memory(std::size_t bytes) {
  Fd memory(::memfd_create("taas memory", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return system_error("cannot make memory that processes share", errno);
  if (::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) return no_memory(bytes, errno);
  if (::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) return system_error("cannot seal shared memory", errno);
  return memory;
}

bool is_shared_memory(const Fd& memory, std::size_t bytes) {
  struct stat status = {};
  const int seals = ::fcntl(memory.get(), F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && ::fstat(memory.get(), &status) == 0 && status.st_size >= 0 &&
         static_cast<std::size_t>(status.st_size) >= bytes;
}

}  // namespace taas
