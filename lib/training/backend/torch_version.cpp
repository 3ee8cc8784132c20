#include "training/backend/torch_version.hpp"

#include <dlfcn.h>
#include <link.h>
#include <torch/version.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace taas {
namespace {

/// "2.15" of "2.15.0".
std::string_view without_patch(std::string_view version) {
  auto minor = version.find('.');
  return minor == version.npos ? version : version.substr(0, version.find('.', minor + 1));
}

/// Empty when it is not loaded.
std::string path_of_library(const char* name) {
  void* library = ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return {};
  link_map* map = nullptr;
  std::string path = ::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
  ::dlclose(library);
  return path;
}

/// Empty when it cannot be read.
std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool end_with_other_torch() {
  auto problem = version_mismatch("torch", TORCH_VERSION, loaded_torch_version());
  if (problem.empty()) return true;
  std::fprintf(stderr, "taas: %s\n", problem.c_str());
  ::_exit(2);
}

const bool kChecked = end_with_other_torch();

}  // namespace

std::string loaded_torch_version() {
  const std::filesystem::path library = path_of_library("libtorch_cpu.so");
  if (library.empty()) return {};
  const auto torch = library.parent_path().parent_path();
  constexpr std::string_view kMark = "__version__ = '";
  const auto module = text_of(torch / "version.py");
  const auto mark = module.find(kMark);
  const auto version = mark == module.npos ? text_of(torch / "build-version") : module.substr(mark + kMark.size());
  return version.substr(0, version.find_first_not_of("0123456789."));
}

std::string version_mismatch(std::string_view what, std::string_view built_with, std::string_view loaded) {
  if (loaded.empty() || without_patch(built_with) == without_patch(loaded)) return {};
  std::string text("libtaas was built with ");
  return text.append(what)
      .append(" ")
      .append(built_with)
      .append(", and this program has found ")
      .append(what)
      .append(" ")
      .append(loaded)
      .append(": build libtaas and the program with that one, or let LD_LIBRARY_PATH lead to the other");
}

void check_torch_version() { static_cast<void>(kChecked); }

}  // namespace taas
