#include "node/ranks/rank_starts.hpp"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "catch.hpp"
#include "proc/spawn/landlock.hpp"

namespace rank_starts_test {

using namespace taas;
using namespace taas::node;

namespace {

/// The second of two nodes with two ranks each, or the first.
std::vector<RankPlace> places_on(int node) {
  const std::vector<NodeShare> world = share_ranks(std::vector<int>{2, 2});
  return place_ranks({world.at(static_cast<std::size_t>(node))}, 4, 2);
}

RankStarts starts_on(int node, RankStartsOptions options = {}) {
  options.command = {"train", "--device=${local_rank}", "${local_rank}/${local_rank}"};
  options.machine.environment = {{"HOME", "/home/user"}, {"RANK", "of another run"}};
  RankStarts starts(std::move(options));
  plan::RunAddresses addresses;
  addresses.master_addr = "10.0.0.1";
  addresses.master_port = 29'500;
  starts.begin(Generation{3}, std::move(addresses), places_on(node));
  return starts;
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

TEST_CASE("a rank inherits the node's environment, and has its own place in it") {
  const auto start = starts_on(1).describe(1);
  CHECK(start.rank == Rank{3});
  CHECK(has(start.environment, "HOME=/home/user"));
  CHECK(has(start.environment, "RANK=3"));
  CHECK(has(start.environment, "LOCAL_RANK=1"));
  CHECK(has(start.environment, "MASTER_ADDR=10.0.0.1"));
  CHECK_FALSE(has(start.environment, "RANK=of another run"));
}

TEST_CASE("the program's arguments know the local rank") {
  CHECK(starts_on(1).describe(1).argv == std::vector<std::string>{"train", "--device=1", "1/1"});
}

TEST_CASE("rank 0 alone reads standard input, and alone writes to protected folders") {
  const Ruleset rules{Fd{}};
  RankStartsOptions options;
  options.inherits_stdin = true;
  options.read_only = &rules;
  const auto first = starts_on(0, options);
  CHECK(first.describe(0).inherits_stdin);
  CHECK(first.describe(0).read_only == nullptr);
  CHECK_FALSE(first.describe(1).inherits_stdin);
  CHECK(first.describe(1).read_only == &rules);
  CHECK_FALSE(starts_on(1, options).describe(0).inherits_stdin);  // of local rank 0 only
}

TEST_CASE("files are a rank's own, and belong to one generation") {
  auto starts = starts_on(1);
  CHECK(starts.describe(0).stdout_file.empty());
  CHECK(starts.describe(0).flight_record.empty());
  const auto at = [](const char* name) { return HeldPath{HeldFolder::open("/proc").value(), name}; };
  starts.use({at("records-"), {{at("out2"), at("err2"), at("error2")}, {at("out3"), at("err3"), at("error3")}}});
  const auto start = starts.describe(1);
  CHECK(start.stdout_file.path() == "/proc/out3");
  CHECK(start.stderr_file.path() == "/proc/err3");
  CHECK(start.error_file.path() == "/proc/error3");
  CHECK(start.flight_record.path() == "/proc/records-3");
  CHECK(has(start.environment, "TORCHELASTIC_ERROR_FILE=/proc/error3"));
  starts.use({{}, {{}, {{}, {}, {}, "/run/private/rank-0003/output"}}});
  CHECK(has(starts.describe(0).environment, "TAAS_OUTPUT_DIR="));
  CHECK(has(starts.describe(1).environment, "TAAS_OUTPUT_DIR=/run/private/rank-0003/output"));
  starts.begin(Generation{4}, {}, places_on(1));
  CHECK(starts.describe(1).stdout_file.empty());
  CHECK(starts.describe(1).flight_record.empty());
}

TEST_CASE("what ranks have in common is what none of them has alone") {
  const auto common = starts_on(1).common();
  CHECK(has(common.variables, "HOME=/home/user"));
  CHECK_FALSE(has(common.variables, "RANK=of another run"));
  CHECK(has(common.per_rank, "RANK"));
  CHECK(has(common.per_rank, "LOCAL_RANK"));
  CHECK_FALSE(has(common.per_rank, "HOME"));
}

TEST_CASE("a folder that cannot be made leaves ranks without files") {
  std::string pattern = std::filesystem::temp_directory_path() / "taas-starts-XXXXXX";
  const std::filesystem::path root = ::mkdtemp(pattern.data());
  const auto folder = storage::create_run_directory({.output = root, .run_id = "run"}).value();
  const auto made = make_paths(folder, Generation{0}, places_on(0), plan::RankFiles::kAll);
  REQUIRE(made.ranks.size() == 2);
  CHECK(made.ranks[1].out.path().ends_with("rank-0001.out"));
  CHECK(made.ranks[1].output.empty());
  const auto apart = make_paths(folder, Generation{0}, places_on(0), plan::RankFiles::kPrivate);
  CHECK(apart.ranks[0].output.empty());
  CHECK(apart.ranks[1].output == folder.private_output(Rank{1}));
  CHECK(std::filesystem::is_directory(apart.ranks[1].output));
  std::filesystem::remove_all(root);
  std::ofstream(root) << "in the way";
  const auto none = make_paths(folder, Generation{1}, places_on(0), plan::RankFiles::kAll);
  REQUIRE(none.ranks.size() == 2);
  CHECK(none.ranks[0].out.empty());
  CHECK(none.flight_records.empty());
  std::filesystem::remove_all(root);
}

}  // namespace rank_starts_test
