#include "training/making/data_task.hpp"

#include <array>
#include <cstring>
#include <span>

#include "data/wire/digest.hpp"

namespace taas {
namespace {

constexpr std::uint64_t kMark = 0x3154414444534154;  // "TASDDAT1"

template <class Word>
void append(std::string& bytes, Word word) {
  static_assert(sizeof(Word) == 8);
  bytes.append(reinterpret_cast<const char*>(&word), sizeof(word));
}

std::uint64_t word_at(std::string_view bytes, std::size_t place) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + 8 * place, sizeof(word));
  return word;
}

template <std::size_t N>
std::uint64_t mixed(const std::array<std::uint64_t, N>& words) {
  return data::digest_of(std::as_bytes(std::span(words)));
}

}  // namespace

std::string DataTask::to_bytes() const {
  std::string bytes;
  bytes.reserve(8 * (2 + indices.size()));
  append(bytes, kMark);
  append(bytes, seed);
  for (auto index : indices) append(bytes, static_cast<std::uint64_t>(index));
  return bytes;
}

std::optional<DataTask> DataTask::from_bytes(std::string_view bytes) {
  auto words = bytes.size() / 8;
  if (bytes.size() % 8 != 0 || words < 2 || word_at(bytes, 0) != kMark) return std::nullopt;
  DataTask task{.seed = word_at(bytes, 1), .indices = {}};
  for (std::size_t place = 2; place < words; ++place) task.indices.push_back(word_at(bytes, place));
  return task;
}

std::uint64_t DataSeeds::of_batch(std::uint64_t number) const {
  return mixed(std::array{initial, rank, loader, epoch, number});
}

std::uint64_t DataSeeds::of_worker(std::uint64_t worker) const {
  constexpr std::uint64_t kWorker = 1;  // one word more than for a batch
  return mixed(std::array{initial, rank, loader, epoch, worker, kWorker});
}

std::uint64_t digest_of_text(std::string_view text) { return data::digest_of(std::as_bytes(std::span(text))); }

std::uint64_t chain_digest(std::uint64_t before, std::uint64_t payload, std::string_view description) {
  return mixed(std::array{before, payload, digest_of_text(description)});
}

}  // namespace taas
