#include "taas/file.hpp"

#include "taas/error.hpp"
#include "training/checkpoint/atomic_file.hpp"
#include "training/checkpoint/pickle.hpp"
#include "training/checkpoint/safetensors.hpp"

namespace taas {

c10::IValue load_file(const std::string& path, const LoadOptions& options) {
  const ReadOptions how{.mapped = options.mapped, .check = options.check};
  return is_safetensors(path) ? read_safetensors(path, how) : unpickle(path, how);
}

void save_file(const std::string& path, const c10::IValue& value) {
  AtomicFile file(path);
  const auto write = [&file](std::string_view bytes) { file.write(bytes); };
  try {
    path.ends_with(".safetensors") ? write_safetensors(value, write) : pickle(value, write);
  } catch (const CheckpointError& error) {
    throw CheckpointError("cannot save " + path + ": " + error.what());
  }
  file.publish();
}

}  // namespace taas
