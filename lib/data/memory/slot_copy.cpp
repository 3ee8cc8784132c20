#include "data/memory/slot_copy.hpp"

#include <algorithm>
#include <cstring>

#include "data/memory/stream_copy.hpp"
#include "data/wire/frame_writer.hpp"

namespace taas::data {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{256} << 10;  // still in the cache when it is copied after its digest
constexpr std::size_t kManyBytes = std::size_t{4} << 20;  // more than are still in the cache when the loop gets there

void copy(std::byte* to, std::span<const std::byte> from) { std::memcpy(to, from.data(), from.size()); }

}  // namespace

SlotCopy::SlotCopy(std::vector<std::span<const std::byte>> buffers)
    : buffers_(std::move(buffers)), bytes_(size_of(buffers_)) {}

void SlotCopy::step(std::span<std::byte> slot, std::size_t most) {
  const auto copy_piece = bytes_ >= kManyBytes ? stream_copy : copy;
  const auto until = copied_ + std::min(most, bytes_ - copied_);
  while (copied_ < until) {
    auto& rest = buffers_[next_];
    const auto piece = rest.first(std::min(rest.size(), kPieceBytes));
    digest_.add(piece);
    copy_piece(&slot[copied_], piece);
    copied_ += piece.size();
    rest = rest.subspan(piece.size());
    if (rest.empty()) ++next_;
  }
}

}  // namespace taas::data
