#include "training/ddp/shared_memory.hpp"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/log/log_line.hpp"
#include "base/memory.hpp"
#include "taas/collectives.hpp"
#include "training/backend/environment.hpp"
#include "training/group/process_group_state.hpp"
#include "training/group/rank_texts.hpp"

namespace taas {
namespace {

constexpr int kSecretBytes = 16;
constexpr std::int64_t kNoProcess = 0;

bool is_wanted() { return process_variable("TAAS_SHARED_MEMORY") != "0"; }

/// Where a process id means the same process: the machine since its start, and the namespace of the ids.
std::string process_space() {
  const auto boot = boot_id();
  struct stat ids = {};
  if (boot.empty() || ::stat("/proc/self/ns/pid", &ids) != 0) return "";
  return boot + '/' + std::to_string(ids.st_ino);
}

/// How the other ranks find rank 0's memory, and know that it is that.
struct Key {
  std::string space;
  pid_t process = 0;
  int descriptor = -1;
  std::string secret;  ///< the memory begins with it until all ranks have looked

  [[nodiscard]] std::string text() const {
    return space + ' ' + std::to_string(process) + ' ' + std::to_string(descriptor) + ' ' + secret;
  }
  static Key of(const std::string& text) {
    Key key;
    std::istringstream(text) >> key.space >> key.process >> key.descriptor >> key.secret;
    return key;
  }
};

std::optional<Mapping> mapped(const Fd& memory, std::size_t bytes) {
  if (!memory || !is_shared_memory(memory, bytes)) return std::nullopt;
  auto mapping = Mapping::of(memory, bytes);
  return mapping ? std::optional(std::move(*mapping)) : std::nullopt;
}

std::optional<Mapping> find(const Key& key, std::size_t bytes) {
  if (key.space.empty() || key.space != process_space()) return std::nullopt;
  const auto path = "/proc/" + std::to_string(key.process) + "/fd/" + std::to_string(key.descriptor);
  auto mapping = mapped(Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC)), bytes);
  if (!mapping || std::memcmp(mapping->bytes().data(), key.secret.data(), key.secret.size()) != 0) return std::nullopt;
  return mapping;
}

/// Rank 0's memory, with the secret in it.
struct Offer {
  Fd descriptor;  ///< what the others open
  std::optional<Mapping> memory;
  Key key;

  /// Empty where there is no memory.
  [[nodiscard]] std::string text() const { return memory ? key.text() : ""; }
};

Offer make_offer(std::size_t bytes) {
  Offer offer;
  auto memory = make_shared_memory(bytes);
  if (!memory) return offer;
  offer.descriptor = std::move(*memory);
  offer.memory = mapped(offer.descriptor, bytes);
  offer.key = {process_space(), ::getpid(), offer.descriptor.get(), random_hex(kSecretBytes)};
  if (offer.memory) {
    std::memcpy(offer.memory->bytes().data(), offer.key.secret.data(), offer.key.secret.size());
  }
  return offer;
}

/// The processes of all ranks; kNoProcess for one that does not take part.
std::vector<std::int64_t> processes_of(const ProcessGroup& group, bool takes_part) {
  auto ids = at::empty({group.world_size(), 1}, at::kLong);
  all_gather(group, ids, at::tensor({takes_part ? std::int64_t{::getpid()} : kNoProcess}, at::kLong));
  return {ids.const_data_ptr<std::int64_t>(), ids.const_data_ptr<std::int64_t>() + group.world_size()};
}

/// A pidfd for each; fewer where one cannot be had.
std::vector<Fd> watched(const std::vector<std::int64_t>& processes) {
  std::vector<Fd> all;
  for (const auto process : processes) {
    Fd descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
    if (descriptor) all.push_back(std::move(descriptor));
  }
  return all;
}

bool all_of_ranks(const ProcessGroup& group, bool mine) {
  auto all = at::tensor({mine ? 1 : 0}, at::kInt);
  all_reduce(group, all, ReduceOp::kMin);
  return all.item<int>() == 1;
}

}  // namespace

/// Whoever tells its process has looked at the memory: then rank 0 clears it, before the last collective. It is used
/// after that.
std::shared_ptr<SharedSums> share_sums(const ProcessGroup& group, std::chrono::milliseconds timeout) {
  const auto bytes = SharedSums::memory_bytes(group.world_size());
  auto offer = group.rank() == 0 && is_wanted() ? make_offer(bytes) : Offer();
  const auto text = broadcast_text(group, offer.text());
  auto memory = group.rank() == 0              ? std::move(offer.memory)
                : is_wanted() && !text.empty() ? find(Key::of(text), bytes)
                                               : std::nullopt;
  const auto processes = processes_of(group, memory.has_value());
  if (std::find(processes.begin(), processes.end(), kNoProcess) != processes.end()) return nullptr;
  if (group.rank() == 0) std::memset(memory->bytes().data(), 0, offer.key.secret.size());
  auto watch = watched(processes);
  if (!all_of_ranks(group, watch.size() == processes.size())) return nullptr;
  if (log::is_on(LogPart::kTraining, LogLevel::kInfo)) {
    log::write(LogPart::kTraining, LogLevel::kInfo, "small buckets of gradients are summed in memory that ranks share");
  }
  return std::make_shared<SharedSums>(std::move(*memory), group.rank(), std::move(watch), timeout);
}

c10::intrusive_ptr<c10d::ProcessGroup> with_shared_memory(const ProcessGroup& group) {
  const auto& state = group.state();
  if (state.backend != kGlooName || state.check_collectives) return state.group;
  auto sums = share_sums(group, state.timeout);
  return sums ? summing_by(state, std::move(sums)) : state.group;
}

}  // namespace taas
