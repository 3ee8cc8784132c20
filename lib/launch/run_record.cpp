#include "launch/run_record.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/environment/environment.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "proc/spawn/command_output.hpp"
#include "proc/spawn/python.hpp"

namespace taas::launch {
namespace {

namespace fs = std::filesystem;

constexpr auto kGitPatience = std::chrono::seconds(5);
constexpr std::size_t kLongestValue = 1024;  // PATH of a cluster's modules is longer than anybody reads

std::string first_line(const std::string& path) {
  const auto text = read_file(path);
  return text ? std::string(trim(text->substr(0, text->find('\n')), " \r")) : std::string();
}

/// ".git" of the folder or of one above it: a folder, or a file that names one (worktrees and submodules).
std::string git_folder(const std::string& folder) {
  std::error_code failed;
  for (auto at = fs::path(folder); !at.empty(); at = at.parent_path()) {
    const auto git = at / ".git";
    const auto kind = fs::status(git, failed).type();
    if (kind == fs::file_type::directory) return git.string();
    if (kind == fs::file_type::regular) {
      constexpr std::string_view kNames = "gitdir: ";
      const auto line = first_line(git.string());
      if (!line.starts_with(kNames)) return {};
      const fs::path named(line.substr(kNames.size()));
      return (named.is_absolute() ? named : at / named).string();
    }
    if (at == at.parent_path()) break;
  }
  return {};
}

/// What a reference stands for: it has a file of its own, or a line in one that has many.
std::string commit_of(const std::string& git, const std::string& reference) {
  const auto shared = first_line(git + "/commondir");
  std::vector<std::string> folders{git};
  if (!shared.empty()) folders.push_back(shared.starts_with('/') ? shared : git + "/" + shared);
  for (const auto& folder : folders) {
    if (auto commit = first_line(folder + "/" + reference); !commit.empty()) return commit;
    const auto packed = read_file(folder + "/packed-refs");
    if (!packed) continue;
    for (auto line : split(*packed, '\n')) {
      if (line.size() > reference.size() + 1 && line.ends_with(" " + reference))
        return std::string(line.substr(0, line.size() - reference.size() - 1));
    }
  }
  return {};
}

/// The value of `name = "value"` or `name: type = 'value'` at the beginning of a line.
std::string assigned(const std::string& text, std::string_view name) {
  for (auto line : split(text, '\n')) {
    if (!line.starts_with(name) || line.size() == name.size()) continue;
    const auto next = line[name.size()];
    if (next != ' ' && next != ':' && next != '=') continue;
    const auto begin = line.find_first_of("'\"", line.find('='));
    const auto end = begin == line.npos ? begin : line.find(line[begin], begin + 1);
    if (end != line.npos) return printable(line.substr(begin + 1, end - begin - 1));
  }
  return {};
}

/// "2.27.5" of nvidia_nccl_cu12-2.27.5.dist-info.
std::string nccl_in(const fs::path& packages) {
  std::error_code failed;
  for (fs::directory_iterator entry(packages, failed), end; !failed && entry != end; entry.increment(failed)) {
    const auto name = entry->path().filename().string();
    const auto dash = name.find('-');
    constexpr std::string_view kEnd = ".dist-info";
    if (!name.starts_with("nvidia_nccl_cu") || !name.ends_with(kEnd) || dash == name.npos) continue;
    return printable(name.substr(dash + 1, name.size() - kEnd.size() - dash - 1));
  }
  return {};
}

/// By the environment: a directory server that names users may be slow, or away.
std::string user_name(const Environment& environment) {
  auto name = value_of(environment, "USER");
  if (name.empty()) name = value_of(environment, "LOGNAME");
  return name.empty() ? std::to_string(::geteuid()) : name;
}

std::string wall_clock() {
  const auto now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto ms = now.time_since_epoch().count() % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(now)), ms);
}

std::string interpreter_of(const Environment& environment) {
  if (auto named = value_of(environment, "PYTHON_EXEC"); named.starts_with('/')) return named;
  return find_in_path("python3", value_of(environment, "PATH"));
}

}  // namespace

run::RunSource find_source(const std::string& folder) {
  constexpr std::string_view kReference = "ref: ", kBranch = "refs/heads/";
  run::RunSource source;
  const auto git = git_folder(folder);
  const auto head = git.empty() ? std::string() : first_line(git + "/HEAD");
  if (!head.starts_with(kReference)) {
    source.commit = printable(head);
    return source;
  }
  const auto reference = head.substr(kReference.size());
  if (reference.starts_with(kBranch)) source.branch = printable(reference.substr(kBranch.size()));
  source.commit = printable(commit_of(git, reference));
  return source;
}

run::RunVersions find_versions(const std::string& interpreter) {
  run::RunVersions versions;
  const auto prefix = fs::path(interpreter).parent_path().parent_path();
  std::error_code failed;
  for (fs::directory_iterator entry(prefix / "lib", failed), end; !failed && entry != end; entry.increment(failed)) {
    constexpr std::string_view kPython = "python3.";
    const auto name = entry->path().filename().string();
    if (!name.starts_with(kPython)) continue;
    const auto packages = entry->path() / "site-packages";
    const auto torch = read_file((packages / "torch/version.py").string());
    const bool environment = fs::exists(prefix / "pyvenv.cfg", failed);
    if (!torch && !environment) continue;
    versions.python = name.substr(std::string_view("python").size());
    if (torch) {
      versions.torch = assigned(*torch, "__version__");
      versions.cuda = assigned(*torch, "cuda");
      if (!versions.cuda.empty()) versions.nccl = nccl_in(packages);
    }
    break;
  }
  return versions;
}

bool is_worth_keeping(const std::string& variable) {
  constexpr std::array<std::string_view, 12> kSecret{"TOKEN",      "SECRET",    "PASSWORD", "PASSWD",
                                                     "CREDENTIAL", "KEY",       "AUTH",     "COOKIE",
                                                     "SESSION",    "SIGNATURE", "DSN",      "WEBHOOK"};
  constexpr std::array<std::string_view, 26> kBegins{
      "CUDA_",      "NCCL_",   "TORCH",      "GLOO_",       "OMP_",    "MKL_",          "KMP_",
      "UCX_",       "FI_",     "PYTORCH_",   "PYTHON",      "TRITON_", "XLA_",          "HSA_",
      "HIP_",       "ROCR_",   "DEEPSPEED_", "ACCELERATE_", "HF_",     "TRANSFORMERS_", "TOKENIZERS_",
      "WANDB_MODE", "CUBLAS_", "TAAS_",      "OPENBLAS_",   "MALLOC_"};
  constexpr std::array<std::string_view, 5> kNames{"PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "VIRTUAL_ENV",
                                                   "CONDA_PREFIX"};
  if (std::ranges::any_of(kSecret, [&](std::string_view word) { return contains(variable, word); })) return false;
  return std::ranges::find(kNames, variable) != kNames.end() ||
         std::ranges::any_of(kBegins, [&](std::string_view begin) { return variable.starts_with(begin); });
}

int count_changes(const std::string& folder) {
  const auto said = run_command({"git", "-C", folder, "status", "--porcelain", "--untracked-files=no"}, kGitPatience,
                                Complaints::kDropped);
  if (!said || said->exit_code > 0) return -1;
  return static_cast<int>(std::ranges::count(said->output, '\n'));
}

run::RunRecord describe_run(const plan::LaunchPlan& plan, const plan::Machine& machine) {
  std::error_code failed;
  run::RunRecord record;
  record.name = plan.options.output.name;
  record.started = wall_clock();
  record.command = plan.command;
  record.folder = fs::current_path(failed).string();
  record.host = machine.hostname;
  record.user = user_name(machine.environment);
  record.ranks = plan.world_size();
  record.nodes = static_cast<int>(plan.nodes.size());
  record.versions = find_versions(interpreter_of(machine.environment));
  record.versions.taas_run = kLauncherVersion;
  record.source = find_source(record.folder);
  record.job = {value_of(machine.environment, "SLURM_JOB_ID"), value_of(machine.environment, "SLURM_ARRAY_JOB_ID"),
                value_of(machine.environment, "SLURM_ARRAY_TASK_ID")};
  for (const auto& [name, value] : machine.environment) {
    if (is_worth_keeping(name) && value.size() <= kLongestValue) record.environment.push_back(name + "=" + value);
  }
  return record;
}

}  // namespace taas::launch
