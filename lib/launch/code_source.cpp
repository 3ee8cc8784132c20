#include "launch/code_source.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/bytes.hpp"
#include "base/files.hpp"
#include "base/folders/beneath.hpp"
#include "base/text.hpp"
#include "node/code/digest.hpp"
#include "proc/spawn/command_output.hpp"
#include "storage/delivery/incoming_file.hpp"
#include "storage/publishing/file_state.hpp"

namespace taas::launch {
namespace {

namespace fs = std::filesystem;

constexpr auto kGitPatience = std::chrono::seconds(10);
constexpr const char* kWayOut =
    "--sync DIR names a smaller folder, .gitignore leaves files out, and --no-sync gives none";

/// Of a folder that is no repository: everything a program is likely to be made of.
std::vector<std::string> names_below(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  const auto options = fs::directory_options::skip_permission_denied;
  fs::recursive_directory_iterator entry(folder, options, failed), end;
  for (; !failed && entry != end && names.size() <= CodeSource::kMostFiles; entry.increment(failed)) {
    const auto name = entry->path().filename().string();
    std::error_code unknown;
    const bool is_folder = entry->is_directory(unknown) && !entry->is_symlink(unknown);
    const bool left_out = name.starts_with('.') || name == "__pycache__" || name == "taas-runs" ||
                          (is_folder && fs::exists(entry->path() / "pyvenv.cfg", unknown));
    if (left_out && is_folder) entry.disable_recursion_pending();
    if (!left_out && !is_folder) names.push_back(entry->path().lexically_relative(folder).string());
  }
  return names;
}

}  // namespace

struct CodeSource::Held {
  run::CodeFile file;
  std::shared_ptr<const std::string> content = {};  // of a link: none
  storage::FileState state = {};
};

struct CodeSource::State {
  std::uint32_t version = 0;
  std::vector<Held> files;  // by name
};

Result<std::shared_ptr<CodeSource>> CodeSource::open(Options options) {
  std::shared_ptr<CodeSource> source(new CodeSource(std::move(options)));
  source->state_ = std::make_shared<State>();
  auto listed = source->names_by_git();
  source->is_repository_ = listed.has_value();
  if (!listed && !source->options_.replaces) return std::shared_ptr<CodeSource>();
  if (!listed) listed = names_below(source->options_.folder);
  auto read = source->read(std::move(*listed));
  if (!read) return read.error();
  if (*read) source->replace(std::move(*read));
  return source;
}

std::uint32_t CodeSource::version() const { return state_->version; }

/// Nothing: it is no repository, or git cannot be asked. Who watches all children of this process may have taken the
/// exit code first; git prints nothing where it fails.
std::optional<std::vector<std::string>> CodeSource::names_by_git() const {
  constexpr int kTaken = -1;
  const auto end =
      run_command({"git", "-C", options_.folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard"},
                  kGitPatience, Complaints::kDropped);
  if (!end || (end->exit_code != 0 && (end->exit_code != kTaken || end->output.empty()))) return std::nullopt;
  std::vector<std::string> names;
  for (const auto name : split(end->output, '\0')) names.emplace_back(name);
  return names;
}

Result<std::shared_ptr<const CodeSource::State>> CodeSource::read_again() const {
  auto listed = is_repository_ ? names_by_git() : std::optional(names_below(options_.folder));
  if (!listed) return unavailable_error(fmt::format("git does not list the files in {}", options_.folder));
  return read(std::move(*listed));
}

Result<std::shared_ptr<const CodeSource::State>> CodeSource::read(std::vector<std::string> listed) const {
  std::set<std::string> names(listed.begin(), listed.end());
  if (!options_.program.empty()) names.insert(options_.program);
  names.erase("");
  if (names.size() > kMostFiles) {
    return usage_error(fmt::format("{} has more than {} files, too many to be given to other machines; {}",
                                   options_.folder, kMostFiles, kWayOut));
  }
  std::map<std::string, const Held*> former;
  for (const auto& held : state_->files) former[held.file.name] = &held;
  auto state = std::make_shared<State>();
  auto& fresh = state->files;
  std::uint64_t bytes = 0;
  bool changed = state_->version == 0;
  for (const auto& name : names) {
    const auto known = former.find(name);
    struct stat status {};
    const bool there = is_name_below(name) && ::lstat((options_.folder + "/" + name).c_str(), &status) == 0;
    if (!there) continue;
    if (known != former.end() && known->second->state == storage::state_of(status)) {
      fresh.push_back(*known->second);
    } else if (auto held = hold(name, status)) {
      changed = changed || known == former.end() || known->second->file != held->file;
      fresh.push_back(std::move(*held));
    } else {
      continue;
    }
    bytes += fresh.back().file.size;
    if (bytes <= kMostBytes) continue;
    return usage_error(fmt::format("the files in {} have more than {}, too much to be given to other machines; {}",
                                   options_.folder, size_in_words(kMostBytes), kWayOut));
  }
  if (!changed && fresh.size() == state_->files.size()) return std::shared_ptr<const State>();
  state->version = state_->version + 1;
  return std::shared_ptr<const State>(std::move(state));
}

/// What cannot be read, or is neither a file nor a link within the folder, nobody gets.
std::optional<CodeSource::Held> CodeSource::hold(const std::string& name, const struct stat& status) const {
  const auto path = options_.folder + "/" + name;
  Held held;
  held.file.name = name;
  held.state = storage::state_of(status);
  if (S_ISLNK(status.st_mode)) {
    std::error_code failed;
    held.file.points_to = fs::read_symlink(path, failed).string();
    const bool within = !failed && storage::link_stays_below(name, held.file.points_to, options_.folder);
    return within ? std::optional(std::move(held)) : std::nullopt;
  }
  auto content = S_ISREG(status.st_mode) ? read_regular_file(path, kMostBytes + 1) : Error{};
  if (!content) return std::nullopt;
  held.file.size = content->size();
  held.file.executable = (status.st_mode & S_IXUSR) != 0;
  held.file.digest = node::sha256(*content);
  held.content = std::make_shared<const std::string>(std::move(*content));
  return held;
}

std::string CodeSource::offer() const {
  run::CodeOffer told{version(), options_.replaces, options_.folder, options_.run_folder, {}};
  for (const auto& held : state_->files) told.files.push_back(held.file);
  return run::encode(told);
}

Result<std::vector<std::string>> CodeSource::answer(std::string_view frame) const {
  auto decoded = run::decode_code_frame(frame);
  if (!decoded) return decoded.error();
  const auto* wanted = std::get_if<run::CodeWanted>(&*decoded);
  if (wanted == nullptr) return protocol_error("an agent offers files of the program");
  std::vector<std::string> frames;
  if (wanted->version != version()) return frames;  // it will hear of the newer one
  const auto* held = wanted->file < state_->files.size() ? &state_->files[wanted->file] : nullptr;
  if (held == nullptr || !held->content) return protocol_error("an agent asks for a file that there is not");
  const std::string_view content = *held->content;
  if (wanted->offset > content.size() || wanted->size > content.size() - wanted->offset)
    return protocol_error("an agent asks for more than a file has");
  for (std::uint64_t at = wanted->offset, end = at + wanted->size; at < end; at += run::kCodePieceBytes) {
    const auto part = content.substr(at, std::min<std::uint64_t>(run::kCodePieceBytes, end - at));
    frames.push_back(run::encode(run::CodePiece{version(), wanted->file, at, part}));
  }
  return frames;
}

Result<std::optional<CodeSource::Options>> code_wanted(const plan::Options& options,
                                                       const std::string& working_directory, bool over_ssh) {
  const auto& asked = options.nodes.sync;
  if (options.nodes.no_sync || (!asked && !over_ssh)) return std::optional<CodeSource::Options>();
  const auto& program = options.program;
  const auto script = (fs::path(working_directory) / program.program).lexically_normal();
  std::error_code unknown;
  const bool is_file = !program.module && fs::is_regular_file(script, unknown);
  const auto below = [&](const fs::path& folder) {
    const auto name = script.lexically_relative(folder).string();
    return is_file && is_name_below(name) ? name : std::string();
  };
  CodeSource::Options wanted;
  wanted.replaces = asked.has_value();
  fs::path folder(working_directory);
  if (asked) folder = (folder / *asked).lexically_normal();
  if (asked && folder.filename().empty()) folder = folder.parent_path();
  if (!asked && is_file && below(folder).empty()) folder = script.parent_path();
  if (!fs::is_directory(folder, unknown))
    return usage_error("--sync " + asked.value_or(folder.string()), "it is no folder");
  wanted.folder = folder.string();
  wanted.program = below(folder);
  return std::optional(std::move(wanted));
}

}  // namespace taas::launch
