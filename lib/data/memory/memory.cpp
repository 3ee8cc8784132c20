#include "data/memory/memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace taas::data {

Error no_memory(std::size_t bytes, int system_errno) {
  return system_error(fmt::format("no memory for {:.1f} MB of batches (a smaller --data-buffer needs less)",
                                  static_cast<double>(bytes) / 1e6),
                      system_errno);
}

Result<SealedMemory> SealedMemory::copy_of(std::span<const std::byte> bytes) {
  constexpr int kSeals = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_WRITE | F_SEAL_SEAL;
  Fd memory(::memfd_create("taas dataset", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return system_error("cannot make memory for a dataset", errno);
  for (std::size_t done = 0; done < bytes.size();) {
    const auto rest = bytes.subspan(done);
    const auto written = ::write(memory.get(), rest.data(), rest.size());
    if (written < 0 && errno != EINTR) return no_memory(bytes.size(), errno);
    done += written < 0 ? 0 : static_cast<std::size_t>(written);
  }
  if (::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) {
    return system_error("cannot seal memory of a dataset", errno);
  }
  return SealedMemory{.descriptor = std::move(memory), .bytes = bytes.size()};
}

Result<SealedMemory> SealedMemory::of(Fd descriptor, std::size_t bytes) {
  struct stat status = {};
  const int seals = ::fcntl(descriptor.get(), F_GET_SEALS);
  constexpr int needed = F_SEAL_SHRINK | F_SEAL_WRITE;
  const bool is_sealed = seals >= 0 && (seals & needed) == needed;
  if (!is_sealed || ::fstat(descriptor.get(), &status) != 0 || status.st_size != static_cast<off_t>(bytes)) {
    return protocol_error("what came as a dataset's memory is none");
  }
  return SealedMemory{.descriptor = std::move(descriptor), .bytes = bytes};
}

}  // namespace taas::data
