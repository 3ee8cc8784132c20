#include "training/data/data_batch.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <torch/types.h>

#include <array>
#include <charconv>
#include <map>
#include <mutex>
#include <new>

#include "data/server/server.hpp"
#include "data/wire/digest.hpp"
#include "training/backend/c10_error.hpp"

namespace taas {
namespace {

constexpr std::size_t kAlignment = data::kBufferAlignment;

const at::Generator& default_generator() { return at::detail::getDefaultCPUGenerator(); }

std::string place_of(std::string_view loader, const std::string& what) {
  return what + " of '" + std::string(loader) + "'";
}

/// What the dataset's code threw, with where it was. Memory that is not there is told apart: another worker may have
/// it.
[[noreturn]] void rethrow(const std::string& where) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    auto text = one_line(error);
    if (text.find("DefaultCPUAllocator") != std::string::npos) throw std::bad_alloc();
    throw DataError(where + ": " + text);
  }
}

at::Tensor presentable(const at::Tensor& tensor, const std::string& where) {
  bool good = tensor.defined() && tensor.device().is_cpu() && tensor.layout() == at::kStrided;
  if (!good) throw DataError(where + ": a batch has tensors on the CPU alone, and strided ones");
  return tensor.detach().contiguous();
}

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

UntouchedState::UntouchedState() : generator_(default_generator_state()), threads_(at::get_num_threads()) {
  if (threads_ != 1) at::set_num_threads(1);
}

UntouchedState::~UntouchedState() {
  if (threads_ != 1) at::set_num_threads(threads_);
  set_default_generator_state(generator_);
}

at::Tensor default_generator_state() {
  auto generator = default_generator();
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_default_generator_state(const at::Tensor& state) {
  auto generator = default_generator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

std::uint64_t default_seed() {
  auto generator = default_generator();
  const std::lock_guard lock(generator.mutex());
  return generator.current_seed();
}

Tensors make_batch(std::string_view loader, Dataset& dataset, const Collate& collate, const DataTask& task) {
  const at::NoGradGuard no_gradients;
  {
    auto generator = default_generator();
    const std::lock_guard lock(generator.mutex());
    generator.set_current_seed(task.seed);
  }
  std::string where;
  try {
    std::vector<Tensors> examples;
    examples.reserve(task.indices.size());
    for (auto index : task.indices) {
      where = "example " + std::to_string(index);
      examples.push_back(dataset.get(index));
    }
    where = "collating a batch";
    Tensors batch = collate(std::move(examples));
    for (auto& tensor : batch) tensor = presentable(tensor, place_of(loader, where));
    return batch;
  } catch (const DataError&) {
    throw;
  } catch (...) {
    rethrow(place_of(loader, where));
  }
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

MadeBatch made_batch(Tensors batch) {
  auto owner = std::make_shared<Tensors>(std::move(batch));
  MadeBatch made{.description = describe(*owner), .buffers = {}, .keep = owner};
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
  std::string_view left = *batch.description;
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
