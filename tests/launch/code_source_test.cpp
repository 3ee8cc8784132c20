#include "launch/code_source.hpp"

#include <sys/stat.h>

#include <filesystem>

#include "catch.hpp"
#include "node/code/digest.hpp"
#include "storage/temporary_folder.hpp"

namespace code_source_test {

using namespace taas;
using namespace taas::launch;
using storage::TemporaryFolder;
using storage::write_text;
namespace fs = std::filesystem;

namespace {

run::CodeOffer offer_of(const CodeSource& source) {
  return std::get<run::CodeOffer>(run::decode_code_frame(source.offer()).value());
}

std::vector<std::string> names_of(const CodeSource& source) {
  std::vector<std::string> names;
  for (const auto& file : offer_of(source).files) names.push_back(file.name);
  return names;
}

std::shared_ptr<CodeSource> open(const std::string& folder, const std::string& program = "") {
  return CodeSource::open({folder, program, "/run", true}).value();
}

}  // namespace

TEST_CASE("of a folder that is no repository nodes get what a program is made of") {
  const TemporaryFolder folder;
  for (const auto* name :
       {"a.py", "deep/b.py", ".hidden/c.py", "__pycache__/a.pyc", "venv/pyvenv.cfg", "venv/d.py", "taas-runs/1/log"})
    write_text(folder / name, name);
  fs::create_symlink("a.py", folder / "link");
  fs::create_symlink("/etc/passwd", folder / "out");
  fs::create_symlink("../../up", folder / "deep/up");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(names_of(*open(folder.path())) == std::vector<std::string>{"a.py", "deep/b.py", "link"});
  CHECK(names_of(*open(folder.path(), ".hidden/c.py")).front() == ".hidden/c.py");
  CHECK(CodeSource::open({folder.path(), "", "/run", false}).value() == nullptr);
}

TEST_CASE("what has changed is a new state, and what has not is none") {
  const TemporaryFolder folder;
  write_text(folder / "a.py", "one");
  write_text(folder / "b.py", "two");
  const auto source = open(folder.path());
  CHECK(source->version() == 1);
  CHECK(source->read_again().value() == nullptr);
  write_text(folder / "a.py", "ONE");
  source->replace(source->read_again().value());
  CHECK(source->version() == 2);
  CHECK(offer_of(*source).files.front().digest == node::sha256("ONE"));
  fs::remove(folder / "b.py");
  source->replace(source->read_again().value());
  CHECK(source->version() == 3);
  CHECK(names_of(*source) == std::vector<std::string>{"a.py"});
}

TEST_CASE("a file is given in ranges, and only as it was offered") {
  const TemporaryFolder folder;
  std::string content(3 * run::kCodePieceBytes / 2, 'x');
  content.back() = 'y';
  write_text(folder / "a.bin", content);
  const auto source = open(folder.path());
  write_text(folder / "a.bin", "other by now");
  const auto size = static_cast<std::uint32_t>(content.size());
  std::string got;
  for (const auto& frame : source->answer(run::encode(run::CodeWanted{1, 0, 1, size - 1})).value())
    got += std::get<run::CodePiece>(run::decode_code_frame(frame).value()).bytes;
  CHECK(got == content.substr(1));
  CHECK(source->answer(run::encode(run::CodeWanted{7, 0, 0, size})).value().empty());
  CHECK_FALSE(source->answer(run::encode(run::CodeWanted{1, 0, 1, size})).has_value());
  CHECK_FALSE(source->answer(run::encode(run::CodeWanted{1, 0, ~0ull, 2})).has_value());
  CHECK_FALSE(source->answer(run::encode(run::CodeWanted{1, 1, 0, 1})).has_value());
  CHECK_FALSE(source->answer(run::encode(run::CodePiece{1, 0, 0, "x"})).has_value());
}

TEST_CASE("which folder nodes are given") {
  const TemporaryFolder folder;
  write_text(folder / "project/deep/train.py", "");
  plan::Options options;
  options.program.program = "deep/train.py";
  const auto here = folder / "project";
  CHECK_FALSE(code_wanted(options, here, false).value().has_value());
  auto wanted = code_wanted(options, here, true).value();
  CHECK((wanted->folder == here && wanted->program == "deep/train.py" && !wanted->replaces));
  options.program.program = "../deep/train.py";
  wanted = code_wanted(options, folder / "project/deep", true).value();
  CHECK((wanted->folder == folder / "project/deep" && wanted->program == "train.py"));
  fs::create_directory(folder / "elsewhere");
  options.program.program = folder / "project/deep/train.py";
  wanted = code_wanted(options, folder / "elsewhere", true).value();
  CHECK((wanted->folder == folder / "project/deep" && wanted->program == "train.py"));
  options.nodes.sync = "../project/";
  wanted = code_wanted(options, folder / "elsewhere", false).value();
  CHECK((wanted->folder == here && wanted->program == "deep/train.py" && wanted->replaces));
  options.nodes.no_sync = true;
  CHECK_FALSE(code_wanted(options, folder / "elsewhere", true).value().has_value());
  options.nodes = {};
  options.nodes.sync = "missing";
  CHECK(code_wanted(options, here, true).error().message == "--sync missing: it is no folder");
}

}  // namespace code_source_test
