#include "training/making/data_batch.hpp"

#include <torch/types.h>

#include <array>
#include <charconv>
#include <map>

#include "data/server/server.hpp"
#include "data/wire/digest.hpp"
#include "taas/error.hpp"

namespace taas {
namespace {

constexpr std::size_t kAlignment = data::kBufferAlignment;

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

std::size_t aligned(std::size_t place) { return (place + kAlignment - 1) / kAlignment * kAlignment; }

/// What at::toString calls them.
at::ScalarType scalar_type(std::string_view name) {
  static const auto names = [] {
    std::map<std::string, at::ScalarType, std::less<>> all;
    for (int number = 0; number < static_cast<int>(at::ScalarType::NumOptions); ++number) {
      auto type = static_cast<at::ScalarType>(number);
      if (type != at::ScalarType::Undefined) all.emplace(c10::toString(type), type);
    }
    return all;
  }();
  auto found = names.find(name);
  if (found != names.end()) return found->second;
  throw DataError("a batch has tensors of a kind that this torch does not know: " + std::string(name));
}

/// "64,3", without the brackets.
std::vector<std::int64_t> parse_sizes(std::string_view text) {
  std::vector<std::int64_t> sizes;
  for (const char *at = text.data(), *end = at + text.size(); at < end; ++at) {
    auto [stop, error] = std::from_chars(at, end, sizes.emplace_back());
    if (error != std::errc{}) throw DataError("a batch has sizes of another release: " + std::string(text));
    at = stop;
  }
  return sizes;
}

}  // namespace

std::size_t MadeBatch::size() const {
  std::size_t bytes = 0;
  for (const auto& buffer : buffers) bytes += buffer.size();
  return bytes;
}

std::string describe(const Tensors& batch) {
  std::string text;
  for (const auto& tensor : batch) {
    if (!text.empty()) text += ' ';
    text += c10::toString(tensor.scalar_type());
    text += '[';
    for (std::int64_t dimension = 0; dimension < tensor.dim(); ++dimension) {
      if (dimension > 0) text += ',';
      text += std::to_string(tensor.size(dimension));
    }
    text += ']';
  }
  return text;
}

MadeBatch made_batch(FreshBatch batch) {
  auto owner = std::make_shared<Tensors>(std::move(batch.tensors));
  auto description = (batch.head ? batch.head->to_text() : "") + describe(*owner);
  MadeBatch made{.description = std::move(description), .buffers = {}, .keep = owner};
  for (const auto& tensor : *owner) made.buffers.push_back(bytes_of(tensor));
  return made;
}

std::uint64_t payload_digest(const MadeBatch& batch) {
  static constexpr std::array<std::byte, kAlignment> kZeros{};
  data::Digest digest;
  std::size_t place = 0;
  for (const auto& buffer : batch.buffers) {
    digest.add(std::span(kZeros).first(aligned(place) - place));
    digest.add(buffer);
    place = aligned(place) + buffer.size();
  }
  return digest.value();
}

Tensors view_batch(const data::Batch& batch) {
  Tensors tensors;
  std::size_t place = 0;
  auto left = split_head(*batch.description).rest;
  while (!left.empty()) {
    auto open = left.find('['), close = left.find(']');
    if (open == left.npos || close == left.npos || close < open)
      throw DataError("a batch is described as by another release");
    auto options = at::TensorOptions().dtype(scalar_type(left.substr(0, open)));
    auto sizes = parse_sizes(left.substr(open + 1, close - open - 1));
    left.remove_prefix(std::min(close + 2, left.size()));
    auto bytes = static_cast<std::size_t>(c10::multiply_integers(sizes)) * options.dtype().itemsize();
    place = aligned(place);
    if (place + bytes > batch.payload.size() && bytes > 0)
      throw DataError("a batch is shorter than its description says");
    auto keep = [slot = batch.slot](void*) {};
    tensors.push_back(bytes == 0 ? at::empty(sizes, options)
                                 : at::from_blob(batch.payload.data() + place, sizes, std::move(keep), options));
    place += bytes;
  }
  return tensors;
}

}  // namespace taas
