#include "storage/private_files.hpp"

#include <filesystem>

#include "catch.hpp"
#include "temporary_folder.hpp"

namespace private_files_test {

using namespace taas;
using namespace taas::storage;
namespace fs = std::filesystem;

namespace {

struct Run {
  Run() : folder(create_run_directory({.output = parent.path(), .run_id = "run"}).value()) {
    REQUIRE(folder.make_private_files().has_value());
  }
  void write(int rank, const std::string& name) const {
    write_text(folder.private_output(Rank{rank}) + "/" + name, "private");
  }
  void publish(const std::string& name) const { write_text(folder.files() + "/" + name, "published"); }

  TemporaryFolder parent;
  RunDirectory folder;
};

}  // namespace

TEST_CASE("a private file is dropped when one of its name is published, and kept otherwise") {
  const Run run;
  run.publish("epoch-1/model.pt");
  run.write(1, "epoch-1/model.pt");
  run.write(12, "epoch-1/model.pt");
  run.write(12, "epoch-1/shard-12.pt");
  const auto sorted = sort_private_files(run.folder);
  CHECK(sorted.dropped == std::vector{Rank{1}, Rank{12}});
  CHECK(sorted.kept == std::vector{Rank{12}});
  CHECK_FALSE(fs::exists(fs::path(run.folder.private_output(Rank{1})).parent_path()));
  CHECK(fs::exists(run.folder.private_output(Rank{12}) + "/epoch-1/shard-12.pt"));
  CHECK_FALSE(fs::exists(run.folder.private_output(Rank{12}) + "/epoch-1/model.pt"));
}

TEST_CASE("what belongs to nobody's private output stays, and without any the folder goes") {
  const Run run;
  CHECK(sort_private_files(run.folder).kept.empty());
  CHECK_FALSE(fs::exists(run.folder.private_files()));
  CHECK(sort_private_files(run.folder).dropped.empty());  // without a folder
  write_text(run.folder.private_files() + "/rank-0003/project/notes.txt", "");
  write_text(run.folder.private_files() + "/of somebody/file", "");
  run.publish("project/notes.txt");
  CHECK(sort_private_files(run.folder).kept.empty());
  CHECK(fs::exists(run.folder.private_files() + "/rank-0003/project/notes.txt"));
  CHECK(fs::exists(run.folder.private_files() + "/of somebody/file"));
}

TEST_CASE("what a link in a rank's place leads to is left alone, and told") {
  const Run run;
  run.publish("notes");
  write_text(run.parent / "victim/notes", "weeks of work");
  write_text(run.parent / "victim/output/notes", "weeks of work");
  fs::create_directories(run.folder.private_files() + "/rank-0002");
  fs::create_directory_symlink(run.parent / "victim", run.folder.private_output(Rank{2}));
  fs::create_directory_symlink(run.parent / "victim", run.folder.private_files() + "/rank-0003");
  run.write(1, "own");
  fs::create_directory_symlink(run.parent / "victim", run.folder.private_output(Rank{1}) + "/inner");
  const auto sorted = sort_private_files(run.folder);
  CHECK(sorted.dropped.empty());
  CHECK(sorted.kept == std::vector{Rank{1}, Rank{1}});
  REQUIRE(sorted.troubles.size() == 2);
  for (const auto& trouble : sorted.troubles) CHECK_THAT(trouble, ContainsSubstring("is a symbolic link to "));
  CHECK(read_text(run.parent / "victim/notes") == "weeks of work");
  CHECK(read_text(run.parent / "victim/output/notes") == "weeks of work");
}

TEST_CASE("published files that were replaced by a link drop nothing") {
  const Run run;
  write_text(run.parent / "victim/model.pt", "another");
  fs::remove(run.folder.files());
  fs::create_directory_symlink(run.parent / "victim", run.folder.files());
  run.write(1, "model.pt");
  CHECK(sort_private_files(run.folder).dropped.empty());
  CHECK(fs::exists(run.folder.private_output(Rank{1}) + "/model.pt"));
}

}  // namespace private_files_test
