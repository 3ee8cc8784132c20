#include "plan/launch_mode/nodelist.hpp"

#include "catch.hpp"

namespace nodelist_test {

using namespace taas;
using namespace taas::plan;

namespace {

using Names = std::vector<std::string>;

template <class Value>
std::string error_of(const Result<Value>& result) {
  REQUIRE(result.has_error());
  CHECK(result.error().code == ErrorCode::kUsage);
  return result.error().message;
}

}  // namespace

TEST_CASE("lists of nodes are expanded as SLURM means them") {
  struct Row {
    const char* text;
    Names expected;
  };
  const Row rows[] = {
      {"a", {"a"}},
      {"a,b", {"a", "b"}},
      {"n[1-3,07,10-12]", {"n1", "n2", "n3", "n07", "n10", "n11", "n12"}},
      {"n[08-11]", {"n08", "n09", "n10", "n11"}},
      {"n[8-11]", {"n8", "n9", "n10", "n11"}},
      {"r[1-2]n[01-02]", {"r1n01", "r1n02", "r2n01", "r2n02"}},
      {"n[1-2]-ib", {"n1-ib", "n2-ib"}},
      {"a[1,3],b,c[2-3]x", {"a1", "a3", "b", "c2x", "c3x"}},
      {"n[5]", {"n5"}},
      {"[1-2]", {"1", "2"}},
      {"gpu-node.cluster", {"gpu-node.cluster"}},
  };
  for (const auto& row : rows) {
    CAPTURE(row.text);
    auto names = expand_nodelist(row.text);
    REQUIRE(names.has_value());
    CHECK(*names == row.expected);
  }
}

TEST_CASE("what is no list of nodes is named") {
  CHECK(error_of(expand_nodelist("")) == ": an empty entry in the list of nodes");
  CHECK(error_of(expand_nodelist("a,,b")) == "a,,b: an empty entry in the list of nodes");
  CHECK(error_of(expand_nodelist("n[1-2")) == "n[1-2: a [ without its ]");
  CHECK(error_of(expand_nodelist("n1-2]")) == "n1-2]: a ] without its [");
  for (std::string range : {"", "x", "3-1", "1-", "-2", "1-2-3", "+1", "9999999999999999999"}) {
    CHECK(error_of(expand_nodelist("n[" + range + "]")) == range + ": not a range of nodes, such as 01-12");
  }
}

TEST_CASE("an expansion without measure is refused before it takes memory") {
  CHECK(expand_nodelist("n[1-65536]").value().size() == 65536);
  CHECK(error_of(expand_nodelist("n[0-65536]")) == "0-65536: more than 65536 entries");
  CHECK(error_of(expand_nodelist("n[1-99999999999]")) == "1-99999999999: more than 65536 entries");
  CHECK(error_of(expand_nodelist("r[1-1000]n[1-1000]")) == "r[1-1000]n[1-1000]: more than 65536 entries");
  CHECK(error_of(expand_nodelist("a[1-60000],b[1-60000]")) == "a[1-60000],b[1-60000]: more than 65536 entries");
  CHECK(error_of(expand_task_counts("1(x2000000000)")) == "1(x2000000000): more than 65536 entries");
}

TEST_CASE("counts of tasks are expanded") {
  CHECK(expand_task_counts("8").value() == std::vector<int>{8});
  CHECK(expand_task_counts("2(x3),1").value() == std::vector<int>{2, 2, 2, 1});
  CHECK(expand_task_counts("1,2,0").value() == std::vector<int>{1, 2, 0});
  for (std::string wrong : {"", "x", "2(x)", "2(x0)", "2(x3", "2(3)", "-1", "1,,2"}) {
    CHECK(error_of(expand_task_counts(wrong)) == wrong + ": not numbers of tasks, such as 2(x3),1");
  }
}

}  // namespace nodelist_test
