#include "plan/program/python_sources.hpp"

#include <algorithm>
#include <deque>
#include <set>
#include <string_view>

#include "base/text.hpp"
#include "plan/program/python_variables.hpp"

namespace taas::plan {
namespace {

constexpr std::size_t kMostFiles = 200;
/// Runs a notebook's cell; its argument is the cell's folder.
constexpr const char* kCell = "taas.notebook.rank";
constexpr std::string_view kTraining[] = {"accelerate",
                                          "colossalai",
                                          "composer",
                                          "deepspeed",
                                          "diffusers",
                                          "fairscale",
                                          "fastai",
                                          "ignite",
                                          "lightning",
                                          "megatron",
                                          "monai",
                                          "nemo",
                                          "peft",
                                          "pl_bolts",
                                          "timm",
                                          "torch",
                                          "pytorch_lightning",
                                          "sentence_transformers",
                                          "torchaudio",
                                          "torchmetrics",
                                          "torchtitan",
                                          "torchtune",
                                          "torchvision",
                                          "transformers",
                                          "trl",
                                          "lightning_fabric"};
/// These change modules that are imported after them, or bring libraries that must not be loaded after torch's.
constexpr std::string_view kBeforeTorch[] = {"comet_ml", "ddtrace", "eventlet", "gevent",  "isaacgym",
                                             "newrelic", "open3d",  "pyarrow",  "scalene", "tensorflow"};

bool is_name_letter(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_'; }

/// "package.module" at the beginning of the text, with leading dots.
std::string_view dotted_name(std::string_view text) {
  auto end =
      std::find_if(text.begin(), text.end(), [](char letter) { return !is_name_letter(letter) && letter != '.'; });
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

/// Every module that an import line may load: of `from a import b, c` also a.b and a.c.
std::vector<std::string> imported(std::string_view line) {
  std::vector<std::string> names;
  bool from = line.starts_with("from ");
  if (!from && !line.starts_with("import ")) return names;
  auto rest = trim(line.substr(from ? 5 : 7));
  if (!from) {
    for (auto part : split(rest, ',')) names.emplace_back(dotted_name(trim(part)));
    return names;
  }
  std::string package(dotted_name(rest));
  names.push_back(package);
  auto keyword = rest.find(" import ");
  if (keyword == rest.npos) return names;
  auto joint = package.ends_with('.') ? "" : ".";
  for (auto part : split(rest.substr(keyword + 8), ',')) {
    auto name = dotted_name(trim(part.substr(std::min(part.size(), part.find_first_not_of(" (\t")))));
    if (!name.empty()) names.push_back(package + joint + std::string(name));
  }
  return names;
}

/// Such as a stand-in for a package that torch would import.
bool replaces_module(std::string_view line) {
  return line.starts_with("sys.modules[") && line.find("] = ") != line.npos;
}

std::string parent(const std::string& path) {
  auto slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash);
}

/// Walks from file to file.
class SourceReader {
 public:
  explicit SourceReader(const ReadSource& read) : read_(read) {}

  /// The first of these files that is there is the program.
  void begin(const std::vector<std::string>& candidates, std::string root) {
    root_ = std::move(root);
    for (const auto& path : candidates) {
      if (!take(path)) continue;
      text_.known = true;
      return;
    }
  }
  /// A cell may have torch from an earlier one: its own text does not tell whether it trains.
  void begin_with_cell(const std::string& folder) {
    root_ = ".";
    take(folder + "/cell.py");
  }
  void begin_with_text(const std::string& text) {
    root_ = ".";
    text_.known = true;
    look_at(text, ".");
  }

  ProgramText finish() && {
    while (!waiting_.empty() && seen_.size() < kMostFiles) {
      auto [text, folder] = std::move(waiting_.front());
      waiting_.pop_front();
      look_at(text, folder);
    }
    return std::move(text_);
  }

 private:
  bool take(const std::string& path) {
    if (seen_.contains(path)) return true;
    auto text = read_(path);
    if (!text) return false;
    seen_.insert(path);
    waiting_.emplace_back(std::move(*text), parent(path));
    return true;
  }

  void look_at(const std::string& text, const std::string& folder) {
    for (auto line : split(text, '\n')) {
      for (const auto& name : imported(trim(line))) follow(name, folder);
      if (replaces_module(trim(line))) text_.goes_first = "the program puts modules of its own into sys.modules";
    }
    auto set = variables_set(text);
    text_.sets_others |= set.others;
    for (auto& name : set.names) {
      auto& all = text_.variables;
      if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(std::move(name));
    }
  }

  void follow(const std::string& name, const std::string& folder) {
    auto first = name.substr(0, name.find('.'));
    if (std::find(std::begin(kTraining), std::end(kTraining), first) != std::end(kTraining)) text_.trains = true;
    if (std::find(std::begin(kBeforeTorch), std::end(kBeforeTorch), first) != std::end(kBeforeTorch))
      text_.goes_first = first + " has to be imported before torch";
    if (first == "accelerate") text_.accelerates = true;
    if (name == "ray.train" || name.starts_with("ray.train.")) text_.trains_by_ray = true;
    auto base = root_;
    auto rest = std::string_view(name);
    if (name.starts_with('.')) {
      base = folder;
      rest.remove_prefix(1);
      for (; rest.starts_with('.'); rest.remove_prefix(1)) base += "/..";
    }
    if (rest.empty()) return;
    for (auto part : split(rest, '.')) {
      base += "/" + std::string(part);
      take(base + "/__init__.py");
    }
    take(base + ".py");
  }

  const ReadSource& read_;
  ProgramText text_;
  std::string root_;  // where absolute imports are looked for
  std::set<std::string> seen_;
  std::deque<std::pair<std::string, std::string>> waiting_;  // texts and their folders
};

std::vector<std::string> files_of_module(const std::string& name) {
  std::string path = name;
  std::replace(path.begin(), path.end(), '.', '/');
  return {"./" + path + "/__main__.py", "./" + path + ".py"};
}

}  // namespace

ProgramText read_program(const PythonCommand& command, const ReadSource& read) {
  SourceReader reader(read);
  switch (command.kind) {
    case PythonCommand::Kind::kText:
      reader.begin_with_text(command.program);
      break;
    case PythonCommand::Kind::kModule:
      if (command.program == kCell)
        reader.begin_with_cell(command.argument);
      else
        reader.begin(files_of_module(command.program), ".");
      break;
    case PythonCommand::Kind::kScript: {
      bool folder = !read(command.program) && read(command.program + "/__main__.py");
      if (folder)
        reader.begin({command.program + "/__main__.py"}, command.program);
      else
        reader.begin({command.program}, parent(command.program));
    }
  }
  return std::move(reader).finish();
}

}  // namespace taas::plan
