#include "proc/output/log_file.hpp"

#include <cerrno>
#include <optional>

#include "held_path.hpp"
#include "proc/file_size_limit.hpp"
#include "proc/processes.hpp"

namespace log_file_test {

using namespace taas;
using namespace taas::test;

TEST_CASE("a log goes on when the disk takes bytes again, and says how many are missing") {
  TemporaryFolder folder;
  LogFile log(held_path(folder / "log"));
  CHECK(log.append("first\n").has_value());
  {
    FileSizeLimit limit(10);
    auto failed = log.append("second\n");
    REQUIRE_FALSE(failed.has_value());
    CHECK(failed.error().system_errno == EFBIG);
    CHECK_THAT(failed.error().message, ContainsSubstring(folder / "log"));
    CHECK(log.append("third\n").has_value());  // told already
  }
  CHECK(log.append("fourth\n").has_value());
  CHECK(*read_file(folder / "log") == "first\nseco\n[taas-run: 9 bytes are missing here: File too large]\nfourth\n");
}

TEST_CASE("what is missing at the end is said there") {
  TemporaryFolder folder;
  LogFile log(held_path(folder / "log"));
  {
    FileSizeLimit limit(2);
    CHECK_FALSE(log.append("first\n").has_value());
  }
  log.close();
  CHECK(*read_file(folder / "log") == "fi\n[taas-run: 4 bytes are missing here: File too large]\n");
}

TEST_CASE("a log that could not be opened is opened when it can be") {
  TemporaryFolder folder;
  LogFile log({HeldFolder::open(folder / "").value(), "later/log"});
  CHECK_FALSE(log.open().has_value());
  CHECK(log.append("one\n").has_value());  // told already
  std::filesystem::create_directory(folder / "later");
  CHECK(log.append("two\n").has_value());
  CHECK(*read_file(folder / "later/log") == "\n[taas-run: 4 bytes are missing here: No such file or directory]\ntwo\n");
}

TEST_CASE("without a path nothing is written and nothing fails") {
  LogFile log({});
  CHECK(log.open().has_value());
  CHECK(log.append("text").has_value());
}

}  // namespace log_file_test
