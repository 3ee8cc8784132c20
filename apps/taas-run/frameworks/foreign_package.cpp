#include "frameworks/foreign_package.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "plan/environment/rank_environment.hpp"
#include "start/local_programs.hpp"

namespace taas::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWayOut = "pip uninstall taas, then pip install --force-reinstall --no-deps <wheel of taas-run>";

/// A folder of site-packages that has the metadata of ours and of the other distribution.
std::string foreign_metadata(const fs::path& site) {
  std::string foreign;
  bool ours = false;
  std::error_code unknown;
  for (const auto& entry : fs::directory_iterator(site, unknown)) {
    auto name = entry.path().filename().string();
    if (!name.ends_with(".dist-info")) continue;
    if (name.starts_with("taas-")) foreign = entry.path();
    ours = ours || name.starts_with("taas_run-");
  }
  return ours ? foreign : "";
}

}  // namespace

std::string foreign_package() {
  std::error_code unknown;
  auto libraries = fs::path(own_path()).parent_path().parent_path() / "lib";
  for (const auto& entry : fs::directory_iterator(libraries, unknown)) {
    if (!entry.path().filename().string().starts_with("python3")) continue;
    if (auto found = foreign_metadata(entry.path() / "site-packages"); !found.empty()) return found;
  }
  return "";
}

Result<> check_foreign_package(plan::LaunchPlan& plan) {
  if (!plan::is_python(plan.options.program)) return {};
  auto foreign = foreign_package();
  if (foreign.empty()) return {};
  auto sentence =
      fmt::format("another distribution, {}, has put its files among those of taas-run; {}", foreign, kWayOut);
  if (plan.options.data.cpus || !plan.options.data.loader.empty()) return usage_error("data delivery: " + sentence);
  plan.notices.push_back("import taas: " + sentence);
  return {};
}

}  // namespace taas::cli
