#include "plan/program.hpp"

#include <map>

#include "catch.hpp"

namespace program_test {

using namespace taas;
using namespace taas::plan;

namespace {

/// A machine in a table.
struct Table : ProgramFinder {
  std::map<std::string, FileKind> files;
  std::map<std::string, std::string> in_path;
  std::map<std::string, std::string> shipped;
  std::string python = "/usr/bin/python3";

  FileKind kind(const std::string& path) const override {
    auto found = files.find(path);
    return found == files.end() ? FileKind::kMissing : found->second;
  }
  std::string find_in_path(const std::string& name) const override {
    auto found = in_path.find(name);
    return found == in_path.end() ? "" : found->second;
  }
  std::string find_shipped(const std::string& name) const override {
    auto found = shipped.find(name);
    return found == shipped.end() ? "" : found->second;
  }
  std::string find_python() const override { return python; }
};

using Words = std::vector<std::string>;

ProgramOptions program(std::string name) {
  ProgramOptions options;
  options.program = std::move(name);
  options.arguments = {"--lr", "1"};
  return options;
}

void fill(Table& table) {
  table.files = {{"x.py", FileKind::kFile},         {"runnable.py", FileKind::kExecutable},
                 {"./tool", FileKind::kExecutable}, {"tool", FileKind::kExecutable},
                 {"script", FileKind::kFile},       {"./script", FileKind::kFile},
                 {"folder", FileKind::kDirectory},  {"./folder", FileKind::kDirectory},
                 {"d.py", FileKind::kDirectory},    {"train", FileKind::kDirectory}};
  table.in_path = {{"sleep", "/bin/sleep"}, {"folder", "/usr/bin/folder"}, {"train", "/usr/bin/train"}};
  table.shipped = {{"train", "/opt/taas/train"}};
}

Words command(const ProgramOptions& options, const Table& table) {
  auto resolved = resolve_program(options, table);
  if (!resolved) return {"error", resolved.error().message};
  return resolved->command;
}

}  // namespace

TEST_CASE("what a program's name means") {
  Table table;
  fill(table);
  auto resolve = [&](const char* name) { return command(program(name), table); };
  const std::string python = table.python;
  CHECK(resolve("x.py") == Words{python, "-u", "x.py", "--lr", "1"});
  CHECK(resolve("runnable.py") == Words{python, "-u", "runnable.py", "--lr", "1"});
  CHECK(resolve("script") == Words{python, "-u", "script", "--lr", "1"});
  CHECK(resolve("./script") == Words{python, "-u", "./script", "--lr", "1"});
  CHECK(resolve("./tool") == Words{"./tool", "--lr", "1"});
  CHECK(resolve("tool") == Words{"./tool", "--lr", "1"});
  CHECK(resolve("sleep") == Words{"/bin/sleep", "--lr", "1"});
  CHECK(resolve("folder") == Words{"/usr/bin/folder", "--lr", "1"});
  CHECK(resolve("train") == Words{"/opt/taas/train", "--lr", "1"});
}

TEST_CASE("flags say what a program is") {
  Table table;
  fill(table);
  auto module = program("pkg.main");
  module.module = true;
  CHECK(command(module, table) == Words{table.python, "-u", "-m", "pkg.main", "--lr", "1"});
  auto plain = program("./script");
  plain.no_python = true;
  CHECK(command(plain, table) == Words{"./script", "--lr", "1"});
  plain.program = "sleep";
  CHECK(command(plain, table) == Words{"/bin/sleep", "--lr", "1"});
  plain.program = "train";
  CHECK(command(plain, table) == Words{"/opt/taas/train", "--lr", "1"});
  auto script = program("./tool");
  script.script = script.no_python = true;
  CHECK(command(script, table) == Words{table.python, "-u", "./tool", "--lr", "1"});
}

TEST_CASE("a file with the name of a shipped program is mentioned") {
  Table table;
  fill(table);
  CHECK(resolve_program(program("train"), table)->notices.empty());
  table.files["train"] = FileKind::kFile;
  CHECK(resolve_program(program("train"), table)->notices ==
        Words{"train is the program shipped with taas-run; ./train is the file here"});
}

TEST_CASE("what cannot be run is a usage error that names it") {
  Table table;
  fill(table);
  table.in_path.clear();
  auto fails = [&](const ProgramOptions& options) {
    auto resolved = resolve_program(options, table);
    REQUIRE(resolved.has_error());
    CHECK(resolved.error().code == ErrorCode::kUsage);
    return resolved.error().message;
  };
  CHECK(fails(program("")) == "the program's name is empty");
  CHECK(fails(program("missing.py")) == "missing.py: no such file");
  CHECK(fails(program("./missing")) == "./missing: no such file");
  CHECK(fails(program("d.py")) == "d.py: a directory, not a program");
  CHECK(fails(program("./folder")) == "./folder: a directory, not a program");
  CHECK(fails(program("folder")) == "folder: a directory, not a program");
  CHECK(fails(program("nothing")) == "nothing: neither a file here, nor a program shipped with taas-run, nor in PATH");
  auto plain = program("nothing");
  plain.no_python = true;
  CHECK(fails(plain) == "nothing: not in PATH; a file in this folder is ./nothing");
  plain.program = "./nothing";
  CHECK(fails(plain) == "./nothing: no such file");
  plain.module = true;
  CHECK(fails(plain) == "-m and --no-python exclude each other");
  table.python.clear();
  CHECK(fails(program("x.py")) ==
        "x.py: no Python interpreter found; activate a virtual environment or set PYTHON_EXEC");
}

}  // namespace program_test
