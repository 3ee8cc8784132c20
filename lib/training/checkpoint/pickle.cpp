#include "training/checkpoint/pickle.hpp"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/csrc/jit/serialization/pickler.h>
#include <torch/csrc/jit/serialization/unpickler.h>

#include <stdexcept>
#include <utility>

#include "training/backend/c10_error.hpp"
#include "training/checkpoint/ordered_dicts.hpp"

namespace taas {
namespace {

constexpr std::string_view kProtocol = "\x80\x02";  // a pickle's beginning, with the number of its protocol

/// Lists of numbers or tensors alone would be written as libtorch's own classes.
c10::IValue made_plain(const c10::IValue& value) {
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
  if (value.isTuple()) {
    std::vector<c10::IValue> elements;
    for (const auto& element : value.toTupleRef().elements()) elements.push_back(made_plain(element));
    return c10::ivalue::Tuple::create(std::move(elements));
  }
  return value;
}

c10::IValue unpickle(const std::string& script, caffe2::serialize::PyTorchStreamReader& file) {
  std::size_t read = 0;
  const auto read_script = [&](char* place, std::size_t most) {
    const auto count = script.copy(place, most, read);
    read += count;
    return count;
  };
  bool damaged = false;
  const auto read_tensor = [&](const std::string& name) {
    damaged = true;
    auto [data, size] = file.getRecord("data/" + name);
    damaged = false;
    return std::move(data);
  };
  torch::jit::Unpickler unpickler(read_script, nullptr, nullptr, read_tensor, at::Device(at::kCPU));
  unpickler.set_version(file.version());
  try {
    return unpickler.parse_ivalue();
  } catch (const std::exception& error) {
    if (damaged) throw;
    throw UnknownObject{"what libtorch cannot read (" + one_line(error) + ")"};
  }
}

}  // namespace

c10::impl::GenericDict plain_dict() { return c10::impl::GenericDict(c10::AnyType::get(), c10::AnyType::get()); }

c10::impl::GenericList plain_list() { return c10::impl::GenericList(c10::AnyType::get()); }

void pickle(const c10::IValue& value, const std::function<void(std::string_view)>& write) {
  std::string script;
  torch::jit::Pickler pickler([&script](const char* bytes, std::size_t size) { script.append(bytes, size); }, nullptr,
                              nullptr, nullptr, nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(made_plain(value));
  pickler.stop();

  caffe2::serialize::PyTorchStreamWriter writer([&write](const void* bytes, std::size_t size) {
    write({static_cast<const char*>(bytes), size});
    return size;
  });
  torch::jit::writeArchiveAndTensors("data", script.data(), script.size(), pickler.tensorData(), writer);
  writer.writeEndOfFile();
}

c10::IValue unpickle(const std::string& path) {
  caffe2::serialize::PyTorchStreamReader file(path);
  const auto [bytes, size] = file.getRecord("data.pkl");
  const std::string_view pickled(static_cast<const char*>(bytes.get()), size);
  const auto instructions = instructions_of(pickled);
  if (!instructions && pickled.starts_with(kProtocol)) throw std::runtime_error("an unknown instruction");
  if (!instructions) return unpickle(std::string(pickled), file);
  if (auto name = foreign_class(*instructions)) throw UnknownObject{"an object of Python's class " + *name};
  return without_attributes(unpickle(without_ordered_dicts(*instructions), file));
}

}  // namespace taas
