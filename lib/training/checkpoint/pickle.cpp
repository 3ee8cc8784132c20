#include "training/checkpoint/pickle.hpp"

#include <ATen/ops/empty.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/log/log_line.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "taas/error.hpp"
#include "training/backend/c10_error.hpp"
#include "training/checkpoint/foreign_file.hpp"
#include "training/checkpoint/unpickler.hpp"

namespace taas {
namespace {

/// Python's torch.load does not know what libtorch writes of others.
void check_type(const at::Tensor& tensor) {
  using at::ScalarType;
  constexpr ScalarType kKnown[] = {at::kFloat, at::kDouble, at::kHalf,         at::kBFloat16,
                                   at::kLong,  at::kInt,    at::kShort,        at::kChar,
                                   at::kByte,  at::kBool,   at::kComplexFloat, at::kComplexDouble};
  if (!tensor.defined()) return;
  if (tensor.layout() != at::kStrided) {
    throw CheckpointError("a sparse tensor cannot be saved as torch.save does: save its parts");
  }
  if (std::find(std::begin(kKnown), std::end(kKnown), tensor.scalar_type()) != std::end(kKnown)) {
    return;
  }
  throw CheckpointError(std::string("a tensor of type ") + at::toString(tensor.scalar_type()) +
                        " cannot be saved as torch.save does: convert it, or save it as safetensors");
}

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
    if (value.isTensor()) check_type(value.toTensor());
    if (value.isString() && valid_utf8(value.toStringRef()) != value.toStringRef()) {
      throw CheckpointError("a string that is not UTF-8, as Python's strings are");
    }
    if (value.isTensor() && value.toTensor().defined() && !value.toTensor().is_cpu()) {
      auto tensor = without_memory(value.toTensor());
      elsewhere_.emplace(tensor.storage().unsafeGetStorageImpl(), value.toTensor());
      return tensor;
    }
    if (value.isGenericDict()) {
      auto dict = plain_dict();
      for (const auto& entry : value.toGenericDict()) dict.insert(made_plain(entry.key()), made_plain(entry.value()));
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

/// Runs `read`, which reads the file. Whatever goes wrong comes out as a CheckpointError that names it.
template <class Read>
auto reading(const std::string& path, Read&& read) {
  const auto note = [&](const std::exception& error) {
    if (!log::is_on(LogPart::kTraining, LogLevel::kInfo)) return;
    log::write(LogPart::kTraining, LogLevel::kInfo, "cannot load " + path + ": " + one_line(error));
  };
  try {
    return read();
  } catch (const CheckpointError&) {
    throw;
  } catch (const UnknownObject& unknown) {
    throw CheckpointError(path + " holds " + printable(valid_utf8(unknown.what)) +
                          ": in Python, save tensors, numbers, strings, lists and dictionaries of these only");
  } catch (const std::exception& error) {
    note(error);
    throw CheckpointError(path + explain_unreadable(path));
  }
}

c10::IValue unpickle(const ZipFile& file, const ReadStorage& read_storage) {
  if (file.contains("byteorder") && file.text("byteorder") != "little") {
    throw UnknownObject{"tensors of a machine with the other order of bytes"};
  }
  return unpickled(file.text("data.pkl"), [&](const std::string& name, std::uint64_t bytes) {
    if (file.size_of("data/" + name) < bytes) throw std::runtime_error("a tensor is shorter than its description");
    return read_storage(name, bytes);
  });
}

/// No memory, but the name of that in the file.
c10::Storage promise_of(const std::string& name, std::uint64_t bytes) {
  at::DataPtr nothing(
      nullptr, new std::string(name), [](void* kept) { delete static_cast<std::string*>(kept); }, at::kCPU);
  return {c10::Storage::use_byte_size_t(), bytes, std::move(nothing)};
}

c10::Storage memory_of(ZipFile& file, const std::string& name) {
  auto data = file.memory("data/" + name);
  return {c10::Storage::use_byte_size_t(), file.size_of("data/" + name), std::move(data)};
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

c10::IValue unpickle(const std::string& path, const ReadOptions& options) {
  return reading(path, [&] {
    ZipFile file(path, options);
    return unpickle(file, [&](const std::string& name, std::uint64_t /*bytes*/) { return memory_of(file, name); });
  });
}

PickledFile::PickledFile(const std::string& path) : path_(path) {
  reading(path, [&] {
    file_ = std::make_unique<ZipFile>(path, ReadOptions{});
    value_ = unpickle(*file_, promise_of);
  });
}
PickledFile::~PickledFile() = default;

at::Tensor PickledFile::read(const at::Tensor& tensor) {
  const auto* name = static_cast<const std::string*>(tensor.storage().data_ptr().get_context());
  if (!name) return tensor;  // of no elements
  return reading(path_, [&] {
    return at::empty({0}, tensor.options())
        .set_(memory_of(*file_, *name), tensor.storage_offset(), tensor.sizes(), tensor.strides());
  });
}

}  // namespace taas
