// What ranks can put in the place of the staging folder, and what then happens. All of it is below a temporary folder.
#include "catch.hpp"
#include "publisher_output.hpp"

namespace publisher_staging_test {

using namespace taas;
using namespace taas::storage;
using publisher_output::Output;
namespace fs = std::filesystem;

TEST_CASE("a link in the staging folder's place is not followed, and is told") {
  Output output;
  const auto victim = output.folder / "victim";
  write_text(victim + "/precious", "text");
  bool while_it_runs = GENERATE(true, false);
  fs::remove_all(output.staging);
  fs::create_directory_symlink(victim, output.staging);
  if (while_it_runs) {
    REQUIRE(output.runs_until([&] { return !output.errors.empty(); }));
    CHECK_THAT(output.errors.front(), ContainsSubstring("is a symbolic link to " + victim));
  }
  CHECK_THAT(output.settle(), ContainsSubstring(".staging is a symbolic link to " + victim) &&
                                  ContainsSubstring("nothing is published from there, and what is in it stays"));
  CHECK(read_text(victim + "/precious") == "text");
  CHECK(fs::is_empty(output.files));
}

TEST_CASE("a folder that the program has made anew is taken") {
  Output output;
  fs::remove_all(output.staging);
  fs::create_directory(output.staging);
  output.write("model.pt", "text");
  SECTION("while the run goes on") {
    REQUIRE(output.runs_until([&] { return output.has("model.pt"); }));
  }
  CHECK(output.settle() == "");
  CHECK(output.published("model.pt") == "text");
  CHECK(output.errors.empty());
}

TEST_CASE("a link that has been taken away again does no harm") {
  Output output;
  const auto victim = output.folder / "victim";
  write_text(victim + "/precious", "text");
  fs::rename(output.staging, output.folder / "aside");
  fs::create_directory_symlink(victim, output.staging);
  REQUIRE(output.runs_until([&] { return !output.errors.empty(); }));
  fs::remove(output.staging);
  fs::rename(output.folder / "aside", output.staging);
  output.write("model.pt", "text");
  CHECK(output.settle() == "");
  CHECK(output.published("model.pt") == "text");
  CHECK(read_text(victim + "/precious") == "text");
}

TEST_CASE("a program that removes its staging folder has published all it wants") {
  Output output;
  output.write("model.pt", "text");
  REQUIRE(output.runs_until([&] { return output.has("model.pt"); }));
  fs::remove_all(output.staging);
  CHECK(output.settle() == "");
  CHECK(output.published("model.pt") == "text");
}

}  // namespace publisher_staging_test
