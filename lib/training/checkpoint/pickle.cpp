#include "training/checkpoint/pickle.hpp"

#include <ATen/ops/empty.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickler.h>
#include <torch/csrc/jit/serialization/unpickler.h>

#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "training/backend/c10_error.hpp"
#include "training/checkpoint/ordered_dicts.hpp"

namespace taas {
namespace {

constexpr std::string_view kProtocol = "\x80\x02";  // a pickle's beginning, with the number of its protocol

/// Its storage goes to the file as it is.
bool is_written_from_memory(const at::Tensor& tensor) { return tensor.is_cpu() || tensor.layout() != at::kStrided; }

/// A tensor that says how large it is and has no memory.
at::Tensor without_memory(const at::Tensor& like) {
  auto tensor = at::empty({0}, like.options().device(at::kCPU));
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(like.sizes());
  tensor.storage().set_nbytes(static_cast<std::size_t>(like.numel()) * like.element_size());
  return tensor;
}

/// A value as Python reads it on any machine: dictionaries and lists are its own (lists of numbers or tensors alone
/// would be written as libtorch's classes), and tensors are on the CPU. Those of other devices are copied when they are
/// written, one at a time.
class PlainValue {
 public:
  explicit PlainValue(const c10::IValue& value) : value_(made_plain(value)) {}

  [[nodiscard]] const c10::IValue& value() const { return value_; }

  /// What the file has for a tensor of value().
  [[nodiscard]] at::Tensor on_cpu(const at::Tensor& tensor) const {
    const auto found = elsewhere_.find(tensor.storage().unsafeGetStorageImpl());
    return found == elsewhere_.end() ? tensor : found->second.to(at::kCPU).contiguous();
  }

 private:
  c10::IValue made_plain(const c10::IValue& value) {
    if (value.isTensor() && value.toTensor().defined() && !is_written_from_memory(value.toTensor())) {
      auto tensor = without_memory(value.toTensor());
      elsewhere_.emplace(tensor.storage().unsafeGetStorageImpl(), value.toTensor());
      return tensor;
    }
    if (value.isGenericDict()) {
      auto dict = plain_dict();
      for (const auto& entry : value.toGenericDict()) dict.insert(entry.key(), made_plain(entry.value()));
      return dict;
    }
    if (value.isList()) {
      auto list = plain_list();
      for (const auto& element : value.toListRef()) list.push_back(made_plain(element));
      return list;
    }
    if (!value.isTuple()) return value;
    std::vector<c10::IValue> elements;
    for (const auto& element : value.toTupleRef().elements()) elements.push_back(made_plain(element));
    return c10::ivalue::Tuple::create(std::move(elements));
  }

  std::unordered_map<const c10::StorageImpl*, at::Tensor> elsewhere_;
  c10::IValue value_;
};

c10::IValue unpickle(const std::string& script, caffe2::serialize::PyTorchStreamReader& file) {
  std::size_t read = 0;
  const auto read_script = [&](char* place, std::size_t most) {
    const auto count = script.copy(place, most, read);
    read += count;
    return count;
  };
  bool damaged = false;
  const auto read_memory = [&](const std::string& name) {
    damaged = true;
    auto [data, size] = file.getRecord("data/" + name);
    damaged = false;
    return std::move(data);
  };
  torch::jit::Unpickler unpickler(read_script, nullptr, nullptr, read_memory, at::Device(at::kCPU));
  unpickler.set_version(file.version());
  try {
    return unpickler.parse_ivalue();
  } catch (const std::exception& error) {
    if (damaged) throw;
    throw UnknownObject{"what libtorch cannot read (" + one_line(error) + ")"};
  }
}

c10::IValue unpickle(caffe2::serialize::PyTorchStreamReader& file) {
  const auto [bytes, size] = file.getRecord("data.pkl");
  const std::string_view pickled(static_cast<const char*>(bytes.get()), size);
  const auto instructions = instructions_of(pickled);
  if (!instructions && pickled.starts_with(kProtocol)) throw std::runtime_error("an unknown instruction");
  if (!instructions) return unpickle(std::string(pickled), file);
  if (auto name = foreign_class(*instructions)) throw UnknownObject{"an object of Python's class " + *name};
  return without_attributes(unpickle(without_ordered_dicts(*instructions), file));
}

}  // namespace

c10::impl::GenericDict plain_dict() { return c10::impl::GenericDict(c10::AnyType::get(), c10::AnyType::get()); }

c10::impl::GenericList plain_list() { return c10::impl::GenericList(c10::AnyType::get()); }

void pickle(const c10::IValue& value, const std::function<void(std::string_view)>& write) {
  const PlainValue plain(value);
  std::string script;
  torch::jit::Pickler pickler([&script](const char* bytes, std::size_t size) { script.append(bytes, size); }, nullptr,
                              nullptr, nullptr, nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(plain.value());
  pickler.stop();

  caffe2::serialize::PyTorchStreamWriter writer([&write](const void* bytes, std::size_t size) {
    write({static_cast<const char*>(bytes), size});
    return size;
  });
  std::size_t number = 0;
  for (const auto& tensor : pickler.tensorData()) {
    const auto written = torch::jit::getWriteableTensorData(plain.on_cpu(tensor));
    writer.writeRecord("data/" + std::to_string(number++), written.data(), written.sizeInBytes());
  }
  writer.writeRecord("data.pkl", script.data(), script.size());
  writer.writeEndOfFile();
}

c10::IValue unpickle(const std::string& path) {
  caffe2::serialize::PyTorchStreamReader file(path);
  return unpickle(file);
}

c10::IValue unpickle(std::istream& stream) {
  caffe2::serialize::PyTorchStreamReader file(&stream);
  return unpickle(file);
}

}  // namespace taas
