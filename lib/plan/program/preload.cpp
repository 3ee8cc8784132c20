#include "plan/program/preload.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/text.hpp"
#include "plan/program/python_command.hpp"
#include "plan/program/python_sources.hpp"

namespace taas::plan {
namespace {

constexpr const char* kDefaultModule = "torch";
/// What OpenMP, BLAS, oneDNN, numpy, torch and TensorFlow read with getenv() when they are loaded, which no hook in
/// Python sees; tqdm, which torch imports, asks for all variables that begin with TQDM_.
constexpr std::string_view kReadAtLoad[] = {"ATEN_",     "BLIS_",    "DNNL_", "GOMP_",  "KMP_",
                                            "MKLDNN_",   "MKL_",     "NPY_",  "OMP_",   "ONEDNN_",
                                            "OPENBLAS_", "PYTORCH_", "TF_",   "TORCH_", "TQDM_"};
/// Of these, what is read later.
constexpr std::string_view kReadLater[] = {"PYTORCH_ENABLE_MPS_FALLBACK",
                                           "PYTORCH_MPS_",
                                           "PYTORCH_NVML_BASED_CUDA_CHECK",
                                           "TORCH_DIST_USE_NCCL2",
                                           "TORCH_EXTENSIONS_DIR",
                                           "TORCH_FR_",
                                           "TORCH_HOME",
                                           "TORCH_NCCL_",
                                           "TORCH_SHOW_CPP_STACKTRACES"};

/// What the C library and Python read when a process starts.
constexpr std::string_view kReadAtStart[] = {"GLIBC_TUNABLES", "LANG",   "LC_",       "LD_",
                                             "MALLOC_",        "PYTHON", "TCMALLOC_", "TZ"};

PreloadChoice none(std::string why, bool is_news) { return {{}, 0, std::move(why), is_news, false}; }

template <std::size_t N>
bool begins_with_one(std::string_view text, const std::string_view (&prefixes)[N]) {
  return std::any_of(std::begin(prefixes), std::end(prefixes), [&](auto prefix) { return text.starts_with(prefix); });
}

bool is_read_at_load(std::string_view name) {
  return begins_with_one(name, kReadAtLoad) && !begins_with_one(name, kReadLater);
}

bool is_module_name(std::string_view name) {
  if (name.empty() || name.starts_with('.') || name.ends_with('.')) return false;
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") == name.npos;
}

/// Where nobody asked for it: is it worth it?
std::optional<PreloadChoice> why_not_by_itself(const Options& options, int ranks, const PythonCommand& command,
                                               const ProgramText& text) {
  if (ranks < 2 && options.supervision.max_restarts == 0) return none("one rank that is started once", false);
  bool guess = !text.known && command.kind != PythonCommand::Kind::kScript;  // an installed module
  if (!text.trains && !guess && text.known) return none("the program does not seem to use torch", false);
  return std::nullopt;
}

}  // namespace

std::vector<std::string> read_at_load() { return {std::begin(kReadAtLoad), std::end(kReadAtLoad)}; }
std::vector<std::string> read_later() { return {std::begin(kReadLater), std::end(kReadLater)}; }

std::vector<std::string> read_at_start(const std::vector<std::string>& names) {
  std::vector<std::string> found;
  std::ranges::copy_if(names, std::back_inserter(found), [](const std::string& name) {
    return is_read_at_load(name) || begins_with_one(name, kReadAtStart);
  });
  return found;
}

Result<> check_preload(std::string_view value) {
  if (value == kPreloadAuto || value == kPreloadNone) return {};
  for (auto name : split(value, ',')) {
    if (!is_module_name(name)) {
      return usage_error(
          fmt::format("\"{}\" is not a module name: auto, none, or names like torch,torch.distributed", name));
    }
  }
  return {};
}

PreloadChoice choose_preload(const Options& options, const std::vector<std::string>& words, int ranks,
                             const ReadSource& read) {
  const auto& wanted = options.program.preload;
  if (wanted == kPreloadNone) return none("--preload none", false);
  bool asked = wanted != kPreloadAuto;
  auto command = parse_python_command(words);
  if (!command) return none("the program is not one that Python runs from a file or module", asked);
  auto text = read_program(*command, read);
  if (!asked) {
    if (auto reason = why_not_by_itself(options, ranks, *command, text)) return *reason;
  }
  auto rest = std::stable_partition(text.variables.begin(), text.variables.end(), is_read_at_load);
  if (rest != text.variables.begin()) {
    return none(fmt::format("the program sets {} itself, which libraries read when they are imported",
                            fmt::join(text.variables.begin(), rest, ", ")),
                true);
  }
  if (text.sets_others) {
    return none("the program sets variables whose names its text does not have, maybe of those read at import", true);
  }
  if (!text.goes_first.empty()) return none(text.goes_first, true);
  PreloadChoice choice{{}, command->options, "", false, !asked, std::move(text.variables)};
  if (!asked) choice.modules.emplace_back(kDefaultModule);
  for (auto name : split(asked ? std::string_view(wanted) : std::string_view(), ',')) {
    if (!name.empty()) choice.modules.emplace_back(name);
  }
  return choice;
}

}  // namespace taas::plan
