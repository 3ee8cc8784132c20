#include "training/checkpoint/safetensors.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstring>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/files.hpp"
#include "taas/error.hpp"
#include "training/checkpoint/pickle.hpp"

namespace taas {
namespace {

namespace json = boost::json;
using at::ScalarType;

constexpr std::size_t kLengthBytes = 8, kAlignment = 8;
constexpr std::uint64_t kLongestHeader = 100'000'000;  // as in the reference implementation
constexpr const char* kMetadata = "__metadata__";

const std::map<std::string_view, ScalarType>& all_types() {
  static const std::map<std::string_view, ScalarType> kTypes{{"F64", at::kDouble},
                                                             {"F32", at::kFloat},
                                                             {"F16", at::kHalf},
                                                             {"BF16", at::kBFloat16},
                                                             {"I64", at::kLong},
                                                             {"I32", at::kInt},
                                                             {"I16", at::kShort},
                                                             {"I8", at::kChar},
                                                             {"U8", at::kByte},
                                                             {"U16", ScalarType::UInt16},
                                                             {"U32", ScalarType::UInt32},
                                                             {"U64", ScalarType::UInt64},
                                                             {"BOOL", at::kBool},
                                                             {"F8_E4M3", at::kFloat8_e4m3fn},
                                                             {"F8_E5M2", at::kFloat8_e5m2},
                                                             {"F8_E8M0", at::kFloat8_e8m0fnu},
                                                             {"C64", at::kComplexFloat}};
  return kTypes;
}

std::uint64_t length_in(std::string_view bytes) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  return length;
}

std::vector<std::int64_t> numbers_in(const json::value& value) {
  std::vector<std::int64_t> numbers;
  for (const auto& number : value.as_array()) {
    numbers.push_back(number.to_number<std::int64_t>());
    if (numbers.back() < 0) throw std::invalid_argument("a negative number");
  }
  return numbers;
}

/// Throws std::exception where an entry is not as it has to be.
class SafetensorsReader {
 public:
  SafetensorsReader(const std::string& path, const ReadOptions& options) : file_(path), options_(options) {
    const auto length = length_in(file_.text(0, kLengthBytes));
    if (length > kLongestHeader) throw std::runtime_error("a header that is too long");
    header_ = json::parse(file_.text(kLengthBytes, length)).as_object();
    begin_ = kLengthBytes + length;
  }

  c10::IValue read() {
    auto tensors = plain_dict();
    for (const auto& [name, entry] : header_) {
      if (name == kMetadata) {
        tensors.insert(kMetadata, metadata(entry.as_object()));
      } else {
        tensors.insert(std::string(name), tensor(entry.as_object()));
      }
    }
    return tensors;
  }

 private:
  static c10::IValue metadata(const json::object& entries) {
    auto all = plain_dict();
    for (const auto& [key, text] : entries) all.insert(std::string(key), std::string(text.as_string()));
    return all;
  }

  at::Tensor tensor(const json::object& entry) {
    const auto type = all_types().at(std::string_view(entry.at("dtype").as_string()));
    const auto sizes = numbers_in(entry.at("shape")), place = numbers_in(entry.at("data_offsets"));
    std::int64_t bytes = static_cast<std::int64_t>(c10::elementSize(type));
    for (const auto size : sizes) {
      if (__builtin_mul_overflow(bytes, size, &bytes)) throw std::runtime_error("a tensor that is too large");
    }
    if (place.size() != 2 || place[1] - place[0] != bytes) throw std::runtime_error("a tensor of another length");
    const auto count = static_cast<std::size_t>(bytes);
    const auto offset = begin_ + static_cast<std::uint64_t>(place[0]);
    if (options_.mapped && offset % c10::elementSize(type) == 0) {
      c10::Storage memory(c10::Storage::use_byte_size_t(), count, file_.map(offset, count));
      return at::empty({0}, at::TensorOptions(type)).set_(memory, 0, sizes);
    }
    if (offset + count > file_.size()) throw std::runtime_error("a tensor beyond the end");
    auto tensor = at::empty(sizes, at::TensorOptions(type));
    file_.read(offset, tensor.data_ptr(), count);
    return tensor;
  }

  OpenedFile file_;
  ReadOptions options_;
  json::object header_;
  std::uint64_t begin_ = 0;
};

std::string_view name_of(ScalarType type) {
  for (const auto& [name, known] : all_types()) {
    if (known == type) return name;
  }
  throw CheckpointError(std::string("safetensors have no type ") + at::toString(type));
}

/// What the file has of a tensor.
at::Tensor as_written(const at::Tensor& tensor) { return tensor.detach().to(at::kCPU).contiguous(); }

}  // namespace

bool is_safetensors(const std::string& path) {
  const auto head = read_regular_file(path, kLengthBytes + 1);
  return head && head->size() > kLengthBytes && (*head)[kLengthBytes] == '{' && length_in(*head) <= kLongestHeader;
}

c10::IValue read_safetensors(const std::string& path, const ReadOptions& options) try {
  return SafetensorsReader(path, options).read();
} catch (const CheckpointError&) {
  throw;
} catch (const std::exception&) {
  throw CheckpointError(path + " is a safetensors file that is cut off or damaged: give another file");
}

/// Large elements first, so that each tensor is aligned.
void write_safetensors(const c10::IValue& value, const std::function<void(std::string_view)>& write) {
  if (!value.isGenericDict()) throw CheckpointError("a safetensors file is a dictionary of tensors");
  json::object header;
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const auto& entry : value.toGenericDict()) {
    if (!entry.key().isString()) throw CheckpointError("a safetensors file has names of tensors as keys alone");
    const auto& name = entry.key().toStringRef();
    if (name == kMetadata) {
      json::object metadata;
      for (const auto& item : entry.value().toGenericDict()) {
        metadata[item.key().toStringRef()] = item.value().toStringRef();
      }
      header[kMetadata] = metadata;
    } else if (entry.value().isTensor() && entry.value().toTensor().layout() == at::kStrided) {
      tensors.emplace_back(name, entry.value().toTensor());
    } else {
      throw CheckpointError(name + " is no dense tensor, and a safetensors file has these alone");
    }
  }
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto& a, const auto& b) { return a.second.element_size() > b.second.element_size(); });
  std::uint64_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto end = at + static_cast<std::uint64_t>(tensor.numel()) * tensor.element_size();
    header[name] = {{"dtype", name_of(tensor.scalar_type())},
                    {"shape", json::array(tensor.sizes().begin(), tensor.sizes().end())},
                    {"data_offsets", {at, end}}};
    at = end;
  }
  auto text = json::serialize(header);
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  const std::uint64_t length = text.size();
  write({reinterpret_cast<const char*>(&length), kLengthBytes});
  write(text);
  for (const auto& entry : tensors) {
    const auto bytes = as_written(entry.second);
    write({static_cast<const char*>(bytes.data_ptr()), bytes.nbytes()});
  }
}

}  // namespace taas
