#include "storage/publishing/failed_names.hpp"

#include "catch.hpp"

namespace failed_names_test {

using namespace taas;
using namespace taas::storage;

const Error kFull = unavailable_error("the disk is full");
const Error kOpen = unavailable_error("a process has it open");

TEST_CASE("a failure is worth a message when it was not so in the round before") {
  FailedNames failed;
  CHECK(failed.add("model.pt", kFull));
  failed.begin_round();
  CHECK_FALSE(failed.add("model.pt", kFull));
  CHECK(failed.add("other.pt", kFull));
  failed.begin_round();
  CHECK(failed.add("model.pt", kOpen));
}

TEST_CASE("a failed name stays failed until its content is another one") {
  FailedNames failed;
  FileState seen;
  seen.size = 3;
  FileState longer;
  longer.size = 4;
  failed.add("model.pt", kFull, seen);
  failed.begin_round();
  CHECK(failed.empty());
  CHECK_FALSE(failed.stays("model.pt", longer));
  CHECK_FALSE(failed.stays("other.pt", seen));
  CHECK(failed.empty());
  CHECK(failed.stays("model.pt", seen));
  CHECK(failed.message() == "the disk is full");
}

TEST_CASE("the message is the first failure's, and counts the others") {
  FailedNames failed;
  CHECK(failed.message().empty());
  failed.add("b", kOpen);
  CHECK(failed.message() == "a process has it open");
  failed.add("a", kFull);
  failed.add("c", kFull);
  CHECK(failed.message() == "the disk is full (and 2 more)");
  failed.remove("a");
  failed.remove("c");
  CHECK(failed.message() == "a process has it open");
  failed.clear();
  failed.begin_round();
  CHECK_FALSE(failed.stays("b", {}));
}

}  // namespace failed_names_test
