#include "plan/program/program.hpp"

#include <cerrno>
#include <map>

#include "catch.hpp"

namespace program_test {

using namespace taas;
using namespace taas::plan;

namespace {

/// A machine in a table.
struct Table : ProgramFinder {
  std::map<std::string, FileKind> files;
  std::map<std::string, std::string> beginnings;
  std::map<std::string, std::string> in_path;
  std::map<std::string, std::string> shipped;
  std::string python = "/usr/bin/python3";
  std::string remark;

  FileKind kind(const std::string& path) const override {
    auto found = files.find(path);
    return found == files.end() ? FileKind::kMissing : found->second;
  }
  std::string beginning(const std::string& path) const override {
    auto found = beginnings.find(path);
    return found == beginnings.end() ? "" : found->second;
  }
  std::string find_in_path(const std::string& name) const override {
    auto found = in_path.find(name);
    return found == in_path.end() ? "" : found->second;
  }
  std::string find_shipped(const std::string& name) const override {
    auto found = shipped.find(name);
    return found == shipped.end() ? "" : found->second;
  }
  Result<std::string> find_python() const override {
    if (python.empty()) return Error{ErrorCode::kCannotExecute, ENOENT, "no Python interpreter found"};
    return python;
  }
  std::string remark_on(const std::string&) const override { return remark; }
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
                 {"d.py", FileKind::kDirectory},    {"train", FileKind::kDirectory},
                 {"app", FileKind::kDirectory},     {"app/__main__.py", FileKind::kFile},
                 {"n.ipynb", FileKind::kFile},      {"./run.ipynb", FileKind::kExecutable},
                 {"s.sh", FileKind::kFile},         {"./model.pt", FileKind::kFile},
                 {"/dev/zero", FileKind::kDevice}};
  table.beginnings = {{"script", "#!/usr/bin/env -S python3 -O\nimport torch\n"},
                      {"s.sh", "#!/bin/sh -e\necho\n"},
                      {"./model.pt", std::string(100, '\0')}};
  table.in_path = {
      {"sleep", "/bin/sleep"}, {"folder", "/usr/bin/folder"}, {"train", "/usr/bin/train"}, {"app", "/usr/bin/app"}};
  table.shipped = {{"train", "/opt/taas/train"}};
}

Words command(const ProgramOptions& options, const Table& table) {
  auto resolved = resolve_program(options, table);
  if (!resolved) return {"error", resolved.error().message};
  return resolved->command;
}

}  // namespace

TEST_CASE("what is to be known of the interpreter is a notice") {
  Table table;
  fill(table);
  table.remark = "another environment is active";
  CHECK(resolve_program(program("x.py"), table)->notices == Words{"another environment is active"});
  CHECK(resolve_program(program("./tool"), table)->notices.empty());
}

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
  CHECK(resolve("app") == Words{python, "-u", "app", "--lr", "1"});
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
  script.program = "s.sh";
  CHECK(command(script, table) == Words{table.python, "-u", "s.sh", "--lr", "1"});
}

TEST_CASE("a file with the name of a shipped program is mentioned") {
  Table table;
  fill(table);
  CHECK(resolve_program(program("train"), table)->notices.empty());
  table.files["train"] = FileKind::kFile;
  CHECK(resolve_program(program("train"), table)->notices ==
        Words{"train is the program shipped with taas-run; ./train is the file here"});
}

TEST_CASE("what is found nowhere, and what cannot be run, is an error that names it") {
  Table table;
  fill(table);
  table.in_path.clear();
  auto fails = [&](const ProgramOptions& options, int system_errno) {
    auto resolved = resolve_program(options, table);
    REQUIRE(resolved.has_error());
    CHECK(resolved.error().code == ErrorCode::kCannotExecute);
    CHECK(resolved.error().system_errno == system_errno);
    return resolved.error().message;
  };
  CHECK(fails(program("missing.py"), ENOENT) == "missing.py: no such file");
  CHECK_THAT(fails(program("./x\r"), ENOENT), ContainsSubstring("ends in a carriage return"));
  CHECK(fails(program("./missing"), ENOENT) == "./missing: no such file");
  CHECK(fails(program("gone.ipynb"), ENOENT).ends_with("nor in PATH"));
  CHECK(fails(program("d.py"), EISDIR) == "d.py: a directory without a __main__.py, not a program");
  CHECK(fails(program("./folder"), EISDIR) == "./folder: a directory without a __main__.py, not a program");
  CHECK(fails(program("folder"), EISDIR) == "folder: a directory without a __main__.py, not a program");
  CHECK(fails(program("/dev/zero"), ENOEXEC) == "/dev/zero: a device, not a program");
  CHECK(fails(program("nothing"), ENOENT) ==
        "nothing: neither a file here, nor a program shipped with taas-run, nor in PATH");
  auto plain = program("nothing");
  Table without_shipped;
  auto missing = resolve_program(program("train"), without_shipped);
  REQUIRE(missing.has_error());
  CHECK(missing.error().system_errno == ENOENT);
  CHECK_THAT(missing.error().message, ContainsSubstring("train: this installation of taas-run comes without it"));
  plain.no_python = true;
  CHECK(fails(plain, ENOENT) == "nothing: not in PATH; a file in this folder is ./nothing");
  plain.program = "./nothing";
  CHECK(fails(plain, ENOENT) == "./nothing: no such file");
  plain.program = "./folder";
  CHECK(fails(plain, EISDIR) == "./folder: a directory, not a program");
  table.python.clear();
  CHECK(fails(program("x.py"), ENOENT) == "x.py: no Python interpreter found");
}

TEST_CASE("a file that is neither executable nor Python is refused with advice") {
  Table table;
  fill(table);
  auto fails = [&](const char* name) {
    auto resolved = resolve_program(program(name), table);
    REQUIRE(resolved.has_error());
    CHECK(resolved.error().code == ErrorCode::kCannotExecute);
    return resolved.error().message;
  };
  CHECK(fails("s.sh") ==
        "s.sh: not executable, and its first line asks for /bin/sh -e: chmod +x s.sh lets that run it, --run-path "
        "Python");
  CHECK(fails("./model.pt") == "./model.pt: neither executable nor Python: it holds binary data");
  CHECK(fails("n.ipynb").starts_with("n.ipynb: a notebook, not a program: jupyter nbconvert --to script n.ipynb"));
  CHECK(fails("./run.ipynb").starts_with("./run.ipynb: a notebook"));
}

TEST_CASE("a program without a name and two ways to run it are usage errors") {
  Table table;
  fill(table);
  auto both = program("./nothing");
  both.no_python = both.module = true;
  CHECK(resolve_program(program(""), table).error().message == "the program's name is empty");
  CHECK(resolve_program(both, table).error().message == "-m and --no-python exclude each other");
  CHECK(resolve_program(both, table).error().code == ErrorCode::kUsage);
}

TEST_CASE("a program that comes through a descriptor is for one rank on this machine") {
  CHECK(check_streamed_program(program("/dev/stdin"), 1, true).has_value());
  CHECK(check_streamed_program(program("x.py"), 8, false).has_value());
  CHECK(check_streamed_program(program("/dev/stdin"), 2, true).has_error());
  CHECK(check_streamed_program(program("/dev/fd/5"), 1, false).has_error());
}

TEST_CASE("data workers are for programs of Python") {
  Table table;
  table.shipped["train"] = "/opt/bin/train";
  table.files["train.py"] = FileKind::kFile;
  Options options;
  options.program = program("train");
  CHECK(resolve_program(options, table).has_value());
  options.data.cpus = 0;
  CHECK(resolve_program(options, table).has_value());
  options.data.cpus = 2;
  const auto refused = resolve_program(options, table);
  REQUIRE(refused.has_error());
  CHECK(refused.error().code == ErrorCode::kUsage);
  CHECK_THAT(refused.error().message, ContainsSubstring("--cpus 2: ") && ContainsSubstring("train is an executable"));
  options.program = program("train.py");
  CHECK(resolve_program(options, table).has_value());
}

}  // namespace program_test
