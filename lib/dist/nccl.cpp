#include "dist/nccl.hpp"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "dist/nccl_plugin.hpp"
#include "taas/error.hpp"

namespace taas {
namespace {

/// The plugin and why it is not there. Never unloaded: libtorch registers itself in tables that outlive everything.
struct Plugin {
  MakeNccl make = nullptr;
  std::string problem;
};

/// On the run path of the program, or in the library folder beside the program's own ($ORIGIN is the loader's word for
/// it).
void* open_plugin() {
  void* library = ::dlopen(kNcclPlugin, RTLD_NOW | RTLD_GLOBAL);
  if (library) return library;
  return ::dlopen((std::string("$ORIGIN/../" TAAS_LIBDIR "/") + kNcclPlugin).c_str(), RTLD_NOW | RTLD_GLOBAL);
}

Plugin load() {
  if (!::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)) return {nullptr, "this machine has no NVIDIA driver"};
  void* library = open_plugin();
  if (!library) {
    Plugin broken{nullptr, ::dlerror()};
    TORCH_WARN("this machine has an NVIDIA driver, but its GPUs cannot be used: ", broken.problem);
    return broken;
  }
  return {reinterpret_cast<MakeNccl>(::dlsym(library, kMakeNccl)), ""};
}

const Plugin& plugin() {
  static const Plugin loaded = load();
  return loaded;
}

}  // namespace

int cuda_device_count() {
  if (!plugin().make || !at::hasCUDA()) return 0;
  return c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).deviceCount();
}

c10::intrusive_ptr<c10d::Backend> make_nccl(const BackendArguments& arguments) {
  if (cuda_device_count() == 0) {
    throw ConfigError("nccl cannot be used: " + (plugin().make ? "no GPU is visible" : plugin().problem));
  }
  c10::intrusive_ptr<c10d::Backend> backend;
  plugin().make(arguments, backend);
  return backend;
}

}  // namespace taas
