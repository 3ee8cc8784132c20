#include "training/checkpoint/pickle.hpp"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/csrc/jit/serialization/pickle.h>

namespace taas {

c10::impl::GenericDict plain_dict() { return c10::impl::GenericDict(c10::AnyType::get(), c10::AnyType::get()); }

std::string pickle(const c10::IValue& value) {
  std::string script;
  torch::jit::Pickler pickler([&script](const char* bytes, std::size_t size) { script.append(bytes, size); }, nullptr,
                              nullptr, nullptr, nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(value);
  pickler.stop();

  std::string file;
  caffe2::serialize::PyTorchStreamWriter writer([&file](const void* bytes, std::size_t size) {
    file.append(static_cast<const char*>(bytes), size);
    return size;
  });
  torch::jit::writeArchiveAndTensors("data", script.data(), script.size(), pickler.tensorData(), writer);
  writer.writeEndOfFile();
  return file;
}

c10::IValue unpickle(const std::string& bytes) { return torch::jit::pickle_load({bytes.begin(), bytes.end()}); }

}  // namespace taas
