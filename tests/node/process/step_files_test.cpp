#include "node/process/step_files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "catch.hpp"

namespace step_files_test {

using namespace taas;
using namespace taas::node;

namespace fs = std::filesystem;

namespace {

struct Scratch {
  Scratch() { REQUIRE(::mkdtemp(name.data()) != nullptr); }
  ~Scratch() { fs::remove_all(name); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] const std::string& path() const { return name; }
  std::string name = (fs::temp_directory_path() / "taas-steps-XXXXXX").string();
};

void write(const std::string& path, const StepCount& count, std::size_t bytes = sizeof(StepCount)) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(&count), static_cast<long>(bytes));
}

}  // namespace

TEST_CASE("steps are read as a rank has written them") {
  const Scratch folder;
  const auto path = folder.path() + "/steps";
  CHECK(read_steps(path).steps == 0);
  write(path, {42, 17, 3.5});
  const auto count = read_steps(path);
  CHECK(count.steps == 42);
  CHECK(count.last_ns == 17);
  CHECK(count.rate == 3.5);
}

TEST_CASE("what is no count counts nothing") {
  const Scratch folder;
  const auto path = folder.path() + "/steps";
  write(path, {42, 17, 3.5}, 20);
  CHECK(read_steps(path).steps == 0);
  for (double rate : {std::nan(""), HUGE_VAL, -1.0}) {
    write(path, {42, 17, rate});
    CHECK(read_steps(path).steps == 0);
  }
  fs::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(read_steps(path).steps == 0);  // and nobody waits for who writes to it
  fs::remove(path);
  write(folder.path() + "/target", {42, 17, 3.5});
  fs::create_symlink("target", path);
  CHECK(read_steps(path).steps == 0);
}

TEST_CASE("files of ranks go with their launcher, and others stay") {
  std::string file;
  {
    StepFiles steps({});
    file = steps.path(Generation{1}, Rank{7});
    REQUIRE_FALSE(file.empty());
    CHECK(file != steps.path(Generation{2}, Rank{7}));
    CHECK(file != StepFiles({}).path(Generation{1}, Rank{7}));
    write(file, {});
    CHECK(fs::exists(file));
  }
  CHECK_FALSE(fs::exists(file));
}

}  // namespace step_files_test
