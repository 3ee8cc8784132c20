#include "training/backend/versions.hpp"

#include <torch/headeronly/version.h>

#include "taas/error.hpp"

/// Of libtorch; older ones lack it.
extern "C" __attribute__((weak)) std::uint64_t aoti_torch_abi_version();

namespace taas {
namespace {

std::string torch_text(std::uint64_t version) {
  const auto part = [&](int shift) { return std::to_string((version >> shift) & 0xff); };
  return part(56) + "." + part(48) + "." + part(40);
}

std::string nccl_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string difference(const std::string& library, const std::string& built, const std::string& loaded) {
  return "libtaas was built with " + library + " " + built + ", and this program has loaded " + loaded +
         ": build libtaas with that one, or put the other one's folder first in LD_LIBRARY_PATH";
}

}  // namespace

std::string difference_of_torch(std::uint64_t built, std::uint64_t loaded) {
  if (built >> 48 == loaded >> 48) return "";
  return difference("torch", torch_text(built), torch_text(loaded));
}

std::string difference_of_nccl(int built, int loaded) {
  const bool has_all = built / 10000 == loaded / 10000 && loaded / 100 >= built / 100;
  return has_all ? "" : difference("NCCL", nccl_text(built), nccl_text(loaded));
}

void check_torch() {
  if (aoti_torch_abi_version == nullptr) return;
  if (auto why = difference_of_torch(TORCH_ABI_VERSION, aoti_torch_abi_version()); !why.empty()) throw ConfigError(why);
}

}  // namespace taas
