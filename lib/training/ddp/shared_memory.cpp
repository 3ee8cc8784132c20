#include "training/ddp/shared_memory.hpp"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/log/log_line.hpp"
#include "taas/collectives.hpp"
#include "training/agreement/rank_texts.hpp"
#include "training/backend/environment.hpp"
#include "training/group/group_setup.hpp"
#include "training/group/process_group_state.hpp"

namespace taas {
namespace {

constexpr int kSecretBytes = 16;

bool is_wanted() { return process_variable("TAAS_SHARED_MEMORY") != "0"; }

/// Where a process id means the same process: the machine since its start, and the namespace of the ids.
std::string process_space() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
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

std::optional<data::Mapping> mapped(const Fd& memory, std::size_t bytes) {
  if (!memory || !data::is_shared_memory(memory, bytes)) return std::nullopt;
  auto mapping = data::Mapping::of(memory, bytes);
  return mapping ? std::optional(std::move(*mapping)) : std::nullopt;
}

std::optional<data::Mapping> find(const Key& key, std::size_t bytes) {
  if (key.space.empty() || key.space != process_space()) return std::nullopt;
  const auto path = "/proc/" + std::to_string(key.process) + "/fd/" + std::to_string(key.descriptor);
  auto mapping = mapped(Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC)), bytes);
  if (!mapping || std::memcmp(mapping->bytes().data(), key.secret.data(), key.secret.size()) != 0) return std::nullopt;
  return mapping;
}

/// Rank 0's text is empty where it has no memory to offer.
std::optional<data::Mapping> common_memory(const ProcessGroup& group) {
  const auto bytes = SharedSums::memory_bytes(group.world_size());
  if (group.rank() != 0) {
    const auto text = broadcast_text(group, "");
    auto mapping = is_wanted() && !text.empty() ? find(Key::of(text), bytes) : std::nullopt;
    barrier(group);  // from here on the descriptor may be closed, and the secret be gone
    return mapping;
  }
  auto memory = data::make_shared_memory(bytes);
  auto mapping = memory && is_wanted() ? mapped(*memory, bytes) : std::nullopt;
  const Key key{process_space(), ::getpid(), memory ? memory->get() : -1, random_hex(kSecretBytes)};
  if (mapping) std::memcpy(mapping->bytes().data(), key.secret.data(), key.secret.size());
  broadcast_text(group, mapping ? key.text() : "");
  barrier(group);
  if (mapping) std::memset(mapping->bytes().data(), 0, key.secret.size());
  return mapping;
}

/// A pidfd for each rank; fewer where one cannot be had.
std::vector<Fd> processes_of(const ProcessGroup& group) {
  auto ids = at::empty({group.world_size(), 1}, at::kLong);
  all_gather(group, ids, at::tensor({static_cast<std::int64_t>(::getpid())}, at::kLong));
  std::vector<Fd> processes;
  for (int rank = 0; rank < group.world_size(); ++rank) {
    Fd process(static_cast<int>(::syscall(SYS_pidfd_open, ids.const_data_ptr<std::int64_t>()[rank], 0)));
    if (process) processes.push_back(std::move(process));
  }
  return processes;
}

bool all_of_ranks(const ProcessGroup& group, bool mine) {
  auto all = at::tensor({mine ? 1 : 0}, at::kInt);
  all_reduce(group, all, ReduceOp::kMin);
  return all.item<int>() == 1;
}

}  // namespace

/// The last collective is behind the memory's last change, and before its first use.
std::shared_ptr<SharedSums> share_sums(const ProcessGroup& group, std::chrono::milliseconds timeout) {
  auto memory = common_memory(group);
  if (!all_of_ranks(group, memory.has_value())) return nullptr;
  auto processes = processes_of(group);
  if (!all_of_ranks(group, static_cast<int>(processes.size()) == group.world_size())) return nullptr;
  if (log::is_on(LogPart::kTraining, LogLevel::kInfo)) {
    log::write(LogPart::kTraining, LogLevel::kInfo, "small buckets of gradients are summed in memory that ranks share");
  }
  return std::make_shared<SharedSums>(std::move(*memory), group.rank(), std::move(processes), timeout);
}

c10::intrusive_ptr<c10d::ProcessGroup> with_shared_memory(const ProcessGroup& group) {
  const auto& state = group.state();
  if (state.backend != kGlooName || state.check_collectives) return state.group;
  auto sums = share_sums(group, state.timeout);
  return sums ? summing_by(state, std::move(sums)) : state.group;
}

}  // namespace taas
