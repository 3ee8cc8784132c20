#include "launch/run_record.hpp"

#include <filesystem>
#include <fstream>

#include "catch.hpp"
#include "storage/temporary_folder.hpp"

namespace run_record_test {

using namespace taas;
using namespace taas::launch;
using storage::TemporaryFolder;

namespace {

void write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

constexpr const char* kCommit = "36120f976b5dc697e6f51e3f16599215a8dd329c";

}  // namespace

TEST_CASE("a commit is found by the files of its repository") {
  TemporaryFolder folder;
  const auto git = folder / "project/.git";
  const auto below = folder / "project/code/deep";
  std::filesystem::create_directories(below);
  write(git + "/HEAD", "ref: refs/heads/topic/one\n");
  SECTION("in the branch's own file") {
    write(git + "/refs/heads/topic/one", std::string(kCommit) + "\n");
    CHECK(find_source(below).commit == kCommit);
    CHECK(find_source(below).branch == "topic/one");
  }
  SECTION("among packed ones") {
    write(git + "/packed-refs", "# pack-refs with: peeled\nffff refs/heads/xtopic/one\n" + std::string(kCommit) +
                                    " refs/heads/topic/one\n^eeee\n");
    CHECK(find_source(below).commit == kCommit);
  }
  SECTION("where none is checked out") {
    write(git + "/HEAD", std::string(kCommit) + "\n");
    CHECK(find_source(below).commit == kCommit);
    CHECK(find_source(below).branch.empty());
  }
  SECTION("in a worktree") {
    write(git + "/worktrees/other/HEAD", "ref: refs/heads/other\n");
    write(git + "/worktrees/other/commondir", "../..\n");
    write(git + "/refs/heads/other", std::string(kCommit) + "\n");
    write(folder / "other/.git", "gitdir: ../project/.git/worktrees/other\n");
    CHECK(find_source(folder / "other").commit == kCommit);
    CHECK(find_source(folder / "other").branch == "other");
  }
  SECTION("before the first commit") { CHECK(find_source(below).commit.empty()); }
  CHECK(find_source("/").commit.empty());
}

TEST_CASE("versions are read beside the interpreter, without importing anything") {
  TemporaryFolder folder;
  write(folder / "bin/python3", "");
  CHECK(find_versions(folder / "bin/python3").python.empty());
  const auto packages = folder / "lib/python3.11/site-packages";
  write(packages + "/torch/version.py",
        "from typing import Optional\n__all__ = ['__version__', 'cuda']\n__version__ = '2.9.1+cu128'\ncuda: "
        "Optional[str] "
        "= \"12.8\"\nhip: Optional[str] = None\n");
  write(packages + "/nvidia_nccl_cu12-2.27.5.dist-info/METADATA", "");
  const auto versions = find_versions(folder / "bin/python3");
  CHECK(versions.python == "3.11");
  CHECK(versions.torch == "2.9.1+cu128");
  CHECK(versions.cuda == "12.8");
  CHECK(versions.nccl == "2.27.5");
  write(packages + "/torch/version.py", "__version__ = '2.9.1+cpu'\ncuda: Optional[str] = None\n");
  CHECK(find_versions(folder / "bin/python3").cuda.empty());
  CHECK(find_versions(folder / "bin/python3").nccl.empty());
  CHECK(find_versions("").torch.empty());
}

TEST_CASE("what changes how training runs is kept, and no secret") {
  for (const char* kept : {"NCCL_DEBUG", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "PYTHONPATH", "PATH", "HF_HOME",
                           "TORCH_LOGS", "TAAS_OUTPUT_DIR", "LD_LIBRARY_PATH"}) {
    CHECK(is_worth_keeping(kept));
  }
  for (const char* left : {"HF_TOKEN", "TAAS_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "HOME", "SSH_AUTH_SOCK",
                           "TORCH_PASSWORD", "PATHS", "HF_HUB_TOKEN_FILE", ""}) {
    CHECK_FALSE(is_worth_keeping(left));
  }
}

}  // namespace run_record_test
