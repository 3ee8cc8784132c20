#include "launch/output/journal_file.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <sstream>

#include "base/files.hpp"
#include "catch.hpp"
#include "held_path.hpp"
#include "proc/file_size_limit.hpp"

namespace journal_file_test {

using namespace taas;
using namespace taas::launch;

namespace {

struct TemporaryFile {
  TemporaryFile() { ::close(::mkstemp(path.data())); }
  ~TemporaryFile() { ::unlink(path.c_str()); }
  std::string path = "/tmp/taas-journal-XXXXXX";
};

std::vector<boost::json::object> lines_of(const std::string& path) {
  std::vector<boost::json::object> lines;
  std::istringstream text(read_file(path).value());
  for (std::string line; std::getline(text, line);) lines.push_back(boost::json::parse(line).as_object());
  return lines;
}

std::string stop_signal() { return R"({"event":"signal_received","signal":15})"; }

}  // namespace

TEST_CASE("a journal goes on when the disk takes lines again, and says how many are missing") {
  TemporaryFile file;
  auto journal = JournalFile::open(held_path(file.path), steady_now()).value();
  CHECK(journal.append(stop_signal()).has_value());
  {
    test::FileSizeLimit limit(read_file(file.path)->size() + 5);
    auto failed = journal.append(stop_signal());
    REQUIRE_FALSE(failed.has_value());
    CHECK_THAT(failed.error().message, ContainsSubstring(file.path));
    CHECK(journal.append(stop_signal()).has_value());  // told already
  }
  CHECK(journal.append(stop_signal()).has_value());
  auto lines = lines_of(file.path);
  REQUIRE(lines.size() == 3);
  CHECK(lines[1].at("event") == "journal_gap");
  CHECK(lines[1].at("lines") == 2);
  CHECK(lines[2].at("event") == lines[0].at("event"));
}

TEST_CASE("a journal is no other file, whatever has its name") {
  TemporaryFile file;
  const auto link = held_path(file.path).with(".link");
  REQUIRE(::symlink(file.path.c_str(), link.path().c_str()) == 0);
  const auto refused = JournalFile::open(link, steady_now());
  link.folder.remove(link.name);
  REQUIRE_FALSE(refused.has_value());
  CHECK_THAT(refused.error().message, ContainsSubstring("is a symbolic link to " + file.path));
  CHECK(read_file(file.path).value().empty());
}

TEST_CASE("a journal that has reached its size keeps the run's end, and says what is missing") {
  TemporaryFile file;
  auto journal = JournalFile::open(held_path(file.path), steady_now(), 100).value();
  std::vector<std::string> told;
  for (int i = 0; i < 10; ++i) {
    if (auto written = journal.append(stop_signal()); !written) told.push_back(written.error().message);
  }
  CHECK(journal.append(R"({"action":"finish"})", JournalFile::Must::kYes).has_value());
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0], ContainsSubstring(file.path));
  auto lines = lines_of(file.path);
  REQUIRE(lines.size() == 5);
  CHECK(lines[3].at("event") == "journal_gap");
  CHECK(lines[3].at("lines") == 7);
  CHECK(lines[4].at("action") == "finish");
}

}  // namespace journal_file_test
