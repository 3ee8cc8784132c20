#include "launch/batch_job.hpp"

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "catch.hpp"
#include "proc/family/family.hpp"
#include "run_until.hpp"

namespace batch_job_test {

using namespace taas;
using namespace taas::launch;

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

namespace {

/// A folder with commands in place of SLURM's: squeue prints the file `state`, and the others write down their calls.
class FakeSlurm {
 public:
  FakeSlurm() {
    std::string made = fs::temp_directory_path() / "taas-test-XXXXXX";
    REQUIRE(::mkdtemp(made.data()) != nullptr);
    folder_ = made;
    command("squeue", "cat state");
    command("scontrol", "echo scontrol $* >>calls; [ ! -e fails ] || { rm fails; echo no controller; exit 1; }");
    command("scancel", "echo scancel $* >>calls; [ ! -e refuses ] || { cat refuses; exit 1; }");
    write("state", "PENDING|JobHeldUser");
  }
  ~FakeSlurm() { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text << "\n"; }
  [[nodiscard]] std::string calls() const {
    std::stringstream text;
    text << std::ifstream(folder_ / "calls").rdbuf();
    return text.str();
  }
  [[nodiscard]] Strings environment() const { return {"PATH=" + folder_.string() + ":/usr/bin:/bin"}; }

 private:
  void command(const std::string& name, const std::string& script) const {
    write(name, "#!/bin/sh\ncd " + folder_.string() + "\n" + script);
    ::chmod((folder_ / name).c_str(), 0755);
  }

  fs::path folder_;
};

/// A job of two nodes, and what is told of it.
struct Told {
  FakeSlurm slurm;
  boost::asio::io_context io;
  Family family{io};
  Strings notices;
  Strings over;
  BatchJob job{io,
               family,
               {"17", "the GPU nodes", 2, slurm.environment()},
               {[this](std::string text) { notices.push_back(std::move(text)); },
                [this](std::string why) { over.push_back(std::move(why)); }}};
};

}  // namespace

TEST_CASE("a job is released once, and again where that fails") {
  Told told;
  told.slurm.write("fails", "");
  told.job.release();
  REQUIRE(run_until(told.io, [&] { return told.notices.size() == 2; }));
  CHECK(told.notices[0].starts_with("job 17 could not be released: no controller; this is tried again"));
  CHECK(told.notices[1] == "job 17 is released: its nodes are waited for");
  CHECK(told.slurm.calls() == "scontrol release 17\nscontrol release 17\n");
}

TEST_CASE("a job that is over is told of, with SLURM's word for it, and is not cancelled") {
  Told told;
  told.slurm.write("state", "CANCELLED|None");
  told.job.watch();
  REQUIRE(run_until(told.io, [&] { return !told.over.empty(); }));
  CHECK(told.over == Strings{"job 17, which has the GPU nodes, is over (CANCELLED): slurm-17.out is its output"});
  CHECK(told.job.end().has_value());
  told.job.release();
  CHECK(told.slurm.calls().empty());
}

TEST_CASE("a job that SLURM does not answer for is asked for again") {
  Told told;
  told.slurm.write("state", "Unable to contact slurm controller");
  told.job.watch();
  told.io.run_one_for(std::chrono::seconds(20));
  told.slurm.write("state", "TIMEOUT|TimeLimit");
  CHECK(run_until(told.io, [&] { return !told.over.empty(); }));
}

TEST_CASE("a job whose nodes have not all joined is cancelled with the run") {
  Told told;
  told.job.arrived(0);
  told.job.arrived(0);  // it was lost and has come back
  CHECK(told.job.end().has_value());
  CHECK(told.slurm.calls() == "scancel 17\n");
}

TEST_CASE("a job whose nodes have joined ends by itself, unless it is in the queue again") {
  Told told;
  for (int i = 0; i < 2; ++i) told.job.arrived(i);
  told.slurm.write("refuses", "scancel: error: Kill job error on job id 17: Invalid job id specified");
  CHECK(told.job.end().has_value());
  CHECK(told.slurm.calls() == "scancel --state=PENDING 17\n");
}

TEST_CASE("a job that cannot be cancelled is left to the user") {
  Told told;
  told.slurm.write("refuses", "scancel: error: Access/permission denied");
  auto ended = told.job.end();
  REQUIRE_FALSE(ended.has_value());
  CHECK(ended.error().message ==
        "job 17, which has the GPU nodes, was not cancelled: scancel: error: Access/permission denied");
}

}  // namespace batch_job_test
