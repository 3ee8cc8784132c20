#include "training/sums/shared_sums.hpp"

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <utility>

#include "training/sums/ring_sum.hpp"

namespace taas {
namespace {

using Word = std::atomic<std::uint32_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == sizeof(std::uint32_t));

constexpr std::size_t kMostBytes = std::size_t{256} << 10;
constexpr std::size_t kMostOfAll = std::size_t{2} << 20;
constexpr std::size_t kLine = 64;  // of a cache
constexpr std::chrono::milliseconds kBetweenLooks{50};
constexpr std::chrono::microseconds kSpinning{30};

void futex(const Word& word, int operation, std::uint32_t value, const timespec* patience) {
  ::syscall(SYS_futex, &word, operation, value, patience, nullptr, 0);
}

int usable_cores() {
  cpu_set_t cores;
  return ::sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

std::string of_rank(int rank, const char* what) { return "rank " + std::to_string(rank) + what; }

}  // namespace

/// What one rank writes and the others read; `sleepers` is written by those that wait for it. Its two slots come
/// behind.
struct SharedSums::Part {
  struct Form {
    std::uint64_t bytes;
    std::uint32_t type;  ///< c10::ScalarType
  };

  alignas(kLine) Word given;  ///< number of the last sum of which this rank has given its part
  alignas(kLine) Word sleepers;
  Word has_left;
  Form forms[2];  ///< of what is in the slots
};

std::size_t SharedSums::most_bytes(int ranks) {
  return std::min(kMostBytes, kMostOfAll / static_cast<std::size_t>(ranks) / kLine * kLine);
}

std::size_t SharedSums::memory_bytes(int ranks) {
  return static_cast<std::size_t>(ranks) * (sizeof(Part) + 2 * most_bytes(ranks));
}

SharedSums::SharedSums(Mapping memory, int rank, std::vector<Fd> processes, std::chrono::milliseconds timeout)
    : memory_(std::move(memory)),
      rank_(rank),
      ranks_(static_cast<int>(processes.size())),
      processes_(std::move(processes)),
      timeout_(timeout),
      spins_(ranks_ <= usable_cores()) {}

SharedSums::Part& SharedSums::part(int rank) const {
  const auto stride = memory_bytes(ranks_) / static_cast<std::size_t>(ranks_);
  return *reinterpret_cast<Part*>(memory_.bytes().data() + static_cast<std::size_t>(rank) * stride);
}

std::byte* SharedSums::values(int rank) const {
  return reinterpret_cast<std::byte*>(&part(rank) + 1) + number_ % 2 * most_bytes(ranks_);
}

bool SharedSums::take(const at::Tensor& tensor) const {
  const auto type = tensor.scalar_type();
  return tensor.layout() == c10::kStrided && tensor.device().is_cpu() && (type == at::kFloat || type == at::kDouble) &&
         tensor.is_contiguous() && tensor.nbytes() <= most_bytes(ranks_);
}

void SharedSums::sum(at::Tensor& tensor) {
  ++number_;
  give(tensor);
  for (int step = 1; step < ranks_; ++step) wait_for((rank_ + step) % ranks_);
  check_same(tensor);
  tensor.scalar_type() == at::kFloat ? add_all<float>(tensor) : add_all<double>(tensor);
}

void SharedSums::leave() { part(rank_).has_left.store(1); }

void SharedSums::give(const at::Tensor& tensor) {
  auto& own = part(rank_);
  own.forms[number_ % 2] = {tensor.nbytes(), static_cast<std::uint32_t>(tensor.scalar_type())};
  if (tensor.nbytes() > 0) std::memcpy(values(rank_), tensor.const_data_ptr(), tensor.nbytes());
  own.given.store(number_);
  if (own.sleepers.load() > 0) futex(own.given, FUTEX_WAKE, INT_MAX, nullptr);
}

/// The numbers go round.
bool SharedSums::has_given(int rank) const { return static_cast<std::int32_t>(part(rank).given.load() - number_) >= 0; }

void SharedSums::wait_for(int rank) {
  const auto begin = std::chrono::steady_clock::now();
  while (spins_ && !has_given(rank) && std::chrono::steady_clock::now() - begin < kSpinning) pause_core();
  while (!has_given(rank)) {
    sleep_until_given(rank);
    const auto text = problem();
    if (has_given(rank)) return;
    if (!text.empty()) throw std::runtime_error(text);
    if (std::chrono::steady_clock::now() - begin < timeout_) continue;
    throw std::runtime_error(of_rank(rank, " has not come within ") + std::to_string(timeout_.count()) + " ms");
  }
}

/// Or for a moment: a rank that is gone wakes nobody.
void SharedSums::sleep_until_given(int rank) const {
  constexpr timespec patience{0, std::chrono::nanoseconds(kBetweenLooks).count()};
  auto& other = part(rank);
  other.sleepers.fetch_add(1);
  const auto given = other.given.load();
  if (static_cast<std::int32_t>(given - number_) < 0) futex(other.given, FUTEX_WAIT, given, &patience);
  other.sleepers.fetch_sub(1);
}

/// Why this sum can never be made, unless all have given their parts by now: a rank that is through with it may be at
/// its end already. Those that are gone come first: others have left because of them.
std::string SharedSums::problem() const {
  if (part(rank_).has_left.load() != 0) return "this rank has aborted the group";
  for (int rank = 0; rank < ranks_; ++rank) {
    pollfd process{processes_[static_cast<std::size_t>(rank)].get(), POLLIN, 0};
    if (::poll(&process, 1, 0) == 1) return of_rank(rank, " is gone: its process has ended");
  }
  for (int rank = 0; rank < ranks_; ++rank) {
    if (part(rank).has_left.load() != 0) return of_rank(rank, " has left the group");
  }
  return "";
}

void SharedSums::check_same(const at::Tensor& tensor) const {
  const auto& own = part(rank_).forms[number_ % 2];
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto& other = part(rank).forms[number_ % 2];
    if (other.bytes == own.bytes && other.type == own.type) continue;
    throw std::runtime_error(of_rank(rank, " gives ") + std::to_string(other.bytes) + " bytes of " +
                             c10::toString(static_cast<c10::ScalarType>(other.type)) + ", this rank " +
                             std::to_string(own.bytes) + " of " + c10::toString(tensor.scalar_type()));
  }
}

template <class Number>
void SharedSums::add_all(at::Tensor& tensor) const {
  std::vector<const Number*> parts;
  for (int rank = 0; rank < ranks_; ++rank) parts.push_back(reinterpret_cast<const Number*>(values(rank)));
  add_in_ring_order(parts, tensor.mutable_data_ptr<Number>(), static_cast<std::size_t>(tensor.numel()));
}

}  // namespace taas
