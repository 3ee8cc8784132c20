#include "options.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "catch.hpp"
#include "input_error.hpp"

namespace options_test {

namespace {
namespace fs = std::filesystem;
using taas::train::ParsedOptions;

/// Sets variables for one test and takes them away again.
struct Environment {
  explicit Environment(const std::string& output, const char* restarts = "0") {
    ::setenv("TAAS_OUTPUT_DIR", output.c_str(), 1);
    ::setenv("TORCHELASTIC_RESTART_COUNT", restarts, 1);
  }
  ~Environment() {
    ::unsetenv("TAAS_OUTPUT_DIR");
    ::unsetenv("TORCHELASTIC_RESTART_COUNT");
  }
};

struct Folder {
  fs::path path = fs::temp_directory_path() / ("taas-options-" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  [[nodiscard]] std::string checkpoint() const { return (path / "checkpoint.pt").string(); }
  void make_checkpoint() const { std::ofstream(checkpoint()) << "x"; }
};

ParsedOptions parse(std::vector<std::string> words) {
  words.insert(words.begin(), "train");
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  return taas::train::parse_options(static_cast<int>(arguments.size()), arguments.data());
}

}  // namespace

TEST_CASE("without options: the defaults, and no checkpoint") {
  auto [options, exit_code] = parse({});
  CHECK_FALSE(exit_code);
  CHECK(options.batch_size == 64);
  CHECK(options.lr == 1.0);
  CHECK(options.gamma == 0.7);
  CHECK(options.checkpoint().empty());
  CHECK_FALSE(options.resume);
}

TEST_CASE("the output folder is the option's, or the environment's") {
  Environment environment("/from/environment");
  CHECK(parse({}).options.checkpoint() == "/from/environment/checkpoint.pt");
  CHECK(parse({"--output", "/own"}).options.checkpoint() == "/own/checkpoint.pt");
}

TEST_CASE("--resume means the checkpoint of the output folder, or the path it is given") {
  Folder folder;
  folder.make_checkpoint();
  Environment environment(folder.path.string());
  CHECK(parse({"--resume"}).options.resume == folder.checkpoint());
  CHECK(parse({"--resume", "--epochs", "2"}).options.resume == folder.checkpoint());
  CHECK(parse({"--output", "/own", "--resume=" + folder.checkpoint()}).options.resume == folder.checkpoint());
  CHECK_FALSE(parse({}).options.resume);
}

TEST_CASE("after a restart by the launcher the run goes on by itself, if there is a checkpoint") {
  Folder folder;
  Environment environment(folder.path.string(), "1");
  CHECK_FALSE(parse({}).options.resume);
  folder.make_checkpoint();
  CHECK(parse({}).options.resume == folder.checkpoint());
}

TEST_CASE("a checkpoint that is asked for must be there") {
  CHECK_THROWS_WITH(parse({"--resume=/no/such.pt"}), ContainsSubstring("/no/such.pt"));
  CHECK_THROWS_WITH(parse({"--resume"}), ContainsSubstring("--output"));
}

TEST_CASE("wrong options end with 2, help with 0") {
  CHECK(parse({"--nonsense"}).exit_code == 2);
  CHECK(parse({"--epochs", "many"}).exit_code == 2);
  CHECK(parse({"--batch-size", "1"}).exit_code == 2);
  CHECK(parse({"--backend", "mpi"}).exit_code == 2);
  CHECK(parse({"--log-every", "0"}).exit_code == 2);
  CHECK(parse({"--help"}).exit_code == 0);
}

}  // namespace options_test
