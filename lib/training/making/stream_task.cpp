#include "training/making/stream_task.hpp"

#include <array>
#include <cstring>

namespace taas {
namespace {

constexpr std::uint64_t kStreamMark = 0x3152545344534154;  // "TASDSTR1"

using Words = std::array<std::uint64_t, 9>;  // the turn comes last

}  // namespace

std::string StreamTask::to_bytes() const {
  const Words words{kStreamMark, seeds.initial, seeds.rank,  seeds.loader, seeds.epoch,
                    world_size,  worker,        num_workers, turn};
  std::string bytes(sizeof(words), '\0');
  std::memcpy(bytes.data(), words.data(), sizeof(words));
  return bytes;
}

std::optional<StreamTask> StreamTask::from_bytes(std::string_view bytes) {
  Words words{};
  if (bytes.size() != sizeof(words)) return std::nullopt;
  std::memcpy(words.data(), bytes.data(), sizeof(words));
  if (words[0] != kStreamMark || words[7] == 0) return std::nullopt;
  return StreamTask{.seeds = {.initial = words[1], .rank = words[2], .loader = words[3], .epoch = words[4]},
                    .world_size = words[5],
                    .worker = words[6],
                    .num_workers = words[7],
                    .turn = words[8]};
}

std::string_view StreamTask::shard_in(std::string_view bytes) {
  return bytes.substr(0, bytes.size() - sizeof(std::uint64_t));
}

Shard StreamTask::shard() const {
  return {
      .rank = seeds.rank, .world_size = world_size, .worker = worker, .num_workers = num_workers, .epoch = seeds.epoch};
}

}  // namespace taas
