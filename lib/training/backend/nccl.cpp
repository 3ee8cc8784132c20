#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "base/ids.hpp"
#include "taas/error.hpp"
#include "training/backend/backends.hpp"
#include "training/backend/versions.hpp"

namespace taas {
namespace {

/// What the plugin exports (nccl_plugin.cpp); it lets c10 exceptions pass.
using MakeNccl = void (*)(const BackendArguments& arguments, c10::intrusive_ptr<c10d::Backend>& result);
using GpuUuid = void (*)(int index, std::string& result);
using NcclVersions = void (*)(int& built, int& loaded);

/// The plugin and why it is not there. Never unloaded: libtorch registers itself in tables that outlive everything.
struct Plugin {
  MakeNccl make = nullptr;
  GpuUuid uuid = nullptr;
  NcclVersions versions = nullptr;
  std::string problem;
  bool broken = false;  ///< there is a driver, but no plugin
};

/// On the run path of the program, or in a library folder beside the program's own ($ORIGIN is the loader's word for
/// it): that of an installation, or that of the build tree, which is always called lib.
void* open_plugin() {
  for (const char* folder : {"", "$ORIGIN/../" TAAS_LIBDIR "/", "$ORIGIN/../lib/"}) {
    const auto path = std::string(folder) + "libtaas_nccl.so";
    if (void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
  }
  return nullptr;
}

Plugin load() {
  Plugin loaded;
  if (!::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)) {
    loaded.problem = "this machine has no NVIDIA driver";
    return loaded;
  }
  if (void* library = open_plugin()) {
    loaded.make = reinterpret_cast<MakeNccl>(::dlsym(library, "taas_make_nccl"));
    loaded.uuid = reinterpret_cast<GpuUuid>(::dlsym(library, "taas_gpu_uuid"));
    loaded.versions = reinterpret_cast<NcclVersions>(::dlsym(library, "taas_nccl_versions"));
  } else {
    loaded.problem = ::dlerror();
    loaded.broken = true;
  }
  return loaded;
}

const Plugin& plugin() {
  static const Plugin loaded = load();
  return loaded;
}

bool hides_all_gpus() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible && (*visible == '\0' || std::string_view(visible) == "-1");
}

const bool kLoadedBeforeMain = hides_all_gpus() || (plugin(), true);

std::string host_name() {
  if (const char* chosen = std::getenv("NCCL_HOSTID")) return chosen;
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return std::string(name.data()) + "/" + boot_id();
}

void require_gpu() {
  if (cuda_device_count() > 0) return;
  throw ConfigError("nccl cannot be used: " + (plugin().make ? "no GPU is visible" : plugin().problem));
}

void check_nccl() {
  int built = 0;
  int loaded = 0;
  plugin().versions(built, loaded);
  if (auto why = difference_of_nccl(built, loaded); !why.empty()) throw ConfigError(why);
}

/// The launcher's default, or nobody's choice.
void end_with_the_process() {
  constexpr const char* kName = "TORCH_NCCL_ASYNC_ERROR_HANDLING";
  const char* chosen = std::getenv(kName);
  if (!chosen || std::string_view(chosen) == "1") ::setenv(kName, "3", 1);
}

}  // namespace

int cuda_device_count() {
  if (plugin().broken) {
    TORCH_WARN_ONCE("this machine has an NVIDIA driver, but its GPUs cannot be used: ", plugin().problem);
  }
  if (!plugin().make || !at::hasCUDA()) return 0;
  return c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).deviceCount();
}

std::string gpu_name(int index) {
  std::string uuid;
  if (plugin().uuid) plugin().uuid(index, uuid);
  return uuid + " of host " + host_name();
}

c10::intrusive_ptr<c10d::Backend> make_nccl(const BackendArguments& arguments, int gpu) {
  require_gpu();
  check_nccl();
  end_with_the_process();
  c10::intrusive_ptr<c10d::Backend> backend;
  plugin().make(arguments, backend);
  backend->setGroupUid(arguments.group_uid);
  const c10::Device device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(gpu));
  backend->setBoundDeviceId(device);
  backend->eagerConnectSingleDevice(device);
  return backend;
}

}  // namespace taas
