#include "data/memory/background_copy.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/quiet_thread.hpp"
#include "data/memory/stream_copy.hpp"

namespace taas::data {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
/// From here on a thread pays off: to start one takes about 20 µs, to copy this ten times as long at most.
constexpr std::size_t kSmallBytes = std::size_t{512} << 10;
constexpr std::size_t kBytesForAThread = std::size_t{4} << 20;
/// A few cores use up what the memory of a machine gives to one of its ranks.
constexpr std::size_t kMostThreads = 4;

}  // namespace

BackgroundCopy::BackgroundCopy(const std::vector<Part>& parts) : process_(::getpid()) {
  std::size_t bytes = 0;
  for (const auto& part : parts) bytes += part.from.size();
  if (bytes <= kSmallBytes) {
    for (const auto& part : parts) {
      if (!part.from.empty()) std::memcpy(part.to, part.from.data(), part.from.size());
    }
    return;
  }
  for (const auto& part : parts) {
    for (std::size_t begin = 0; begin < part.from.size(); begin += kPieceBytes) {
      pieces_.push_back(
          {.to = part.to + begin, .from = part.from.subspan(begin, std::min(kPieceBytes, part.from.size() - begin))});
    }
  }
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  threads_.resize(std::min({bytes / kBytesForAThread + 1, kMostThreads, cores}));
  for (auto& thread : threads_) {
    if (!begin_quietly(thread, [this] { work(); })) break;  // wait() does what is left
  }
}

BackgroundCopy::~BackgroundCopy() {
  wait();
  // A thread that is not in this process can neither be joined nor destroyed.
  if (::getpid() != process_) static_cast<void>(new std::vector<std::thread>(std::move(threads_)));
}

void BackgroundCopy::wait() {
  if (::getpid() != process_) return;
  work();
  for (auto& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void BackgroundCopy::work() {
  for (auto number = next_++; number < pieces_.size(); number = next_++) {
    stream_copy(pieces_[number].to, pieces_[number].from);
    ++done_;
  }
}

}  // namespace taas::data
