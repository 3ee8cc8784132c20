#include "ui/view/data_progress_view.hpp"

#include "catch.hpp"
#include "ui/helpers.hpp"
#include "ui/text/quantities.hpp"

namespace data_board_test {

using namespace taas;
using namespace taas::ui;

using Lines = std::vector<std::string>;

namespace {

run::DataProgress progress(int rank, const std::string& loader, std::int64_t samples, double seconds, double waited,
                           int at) {
  run::DataProgress told;
  told.rank = Rank{rank};
  told.loader = loader;
  told.samples = samples;
  told.batches = samples / 100;
  told.bytes = samples * 1000;
  told.seconds = seconds;
  told.waited = waited;
  told.buffered = 3;
  told.workers = 2;
  told.at = at_ms(at);
  return told;
}

}  // namespace

TEST_CASE("quantities for people") {
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(999) == "999");
  CHECK(with_commas(1000) == "1,000");
  CHECK(with_commas(1234567) == "1,234,567");
  CHECK(byte_count(0) == "0 B");
  CHECK(byte_count(999) == "999 B");
  CHECK(byte_count(1000) == "1.0 kB");
  CHECK(byte_count(5.2e9) == "5.2 GB");
  CHECK(byte_count(250e6) == "250 MB");
  CHECK(byte_count(999.9e6) == "1.0 GB");
}

TEST_CASE("a row for each loader, with the rate of the last seconds") {
  DataProgressView board({2, true});
  CHECK(board.rows().empty());
  board.update(progress(0, "train", 1000, 1, 0, 1000));
  CHECK(board.rows() == Lines{"data train: 3 batches buffered | waited 0.0 % | 1.0 MB"});
  board.update(progress(1, "train", 1000, 1, 0.5, 1500));
  board.update(progress(0, "train", 2000, 2, 0.5, 2000));
  board.update(progress(0, "val", 100, 1, 0, 2000));
  CHECK(board.rows() == Lines{"data train: 2,000 samples/s, 2.0 MB/s | 6 batches buffered | waited 33.3 % | 3.0 MB",
                              "data val: 3 batches buffered | waited 0.0 % | 100 kB"});
  board.update(progress(0, "train", 2000, 2, 0.5, 20000));
  board.update(progress(0, "train", 2000, 2, 0.5, 26000));
  CHECK_THAT(board.rows().front(), ContainsSubstring("data train: 0 samples/s"));
}

TEST_CASE("the judgement counts all ranks, and what ranks of former generations took") {
  DataProgressView board({2, true});
  board.update(progress(0, "train", 500, 5, 1, 1000));
  board.update(progress(0, "train", 100, 1, 0, 2000));  // another process
  board.update(progress(1, "train", 400, 4, 0, 2000));
  CHECK(board.verdict() == Lines{"data: train: 1,000 samples in 6.0 s, 167 kB/s; the GPUs waited 10.0 % for data"});
}

TEST_CASE("of what ranks make themselves nobody has counted bytes") {
  DataProgressView board({0, false});
  for (auto told : {progress(0, "train", 0, 1, 0, 1000), progress(0, "train", 1000, 5, 1, 5000)}) {
    told.bytes = told.workers = told.buffered = 0;
    board.update(told);
  }
  CHECK(board.rows() == Lines{"data train: 250 samples/s | waited 20.0 %"});
  CHECK(board.verdict() == Lines{"data: train: 1,000 samples in 5.0 s; the ranks waited 20.0 % for data"});
}

TEST_CASE("CPU machines that would have been enough") {
  auto judged = [](int machines, double busy, const char* second_loader = nullptr) {
    DataProgressView board({machines, false});
    board.update(progress(0, "train", 1000000, 100, 0, 1000));
    if (second_loader != nullptr) board.update(progress(0, second_loader, 10, 1, 0, 1000));
    for (int worker = 0; worker < machines; ++worker) board.update(run::DataWork{worker, 10, busy, 110, at_ms(1000)});
    return board.verdict();
  };
  const std::string kTold = "data: train: 1,000,000 samples in 100.0 s, 10.0 MB/s; the ranks waited 0.0 % for data";
  CHECK(judged(4, 20) == Lines{kTold + "; 1 CPU machine would have been enough"});
  CHECK(judged(4, 45) == Lines{kTold + "; 2 CPU machines would have been enough"});
  CHECK(judged(1, 50) == Lines{kTold + "; 1 CPU machine was enough"});
  CHECK(judged(2, 80) == Lines{kTold + "; 2 CPU machines were enough"});
  CHECK(judged(1, 110) == Lines{kTold + "; 2 CPU machines would have kept up"});
  CHECK(judged(4, 0) == Lines{kTold});
  CHECK(judged(4, 20, "val").back() == "data: 1 CPU machine would have been enough");
}

TEST_CASE("before the first loop what is prepared") {
  DataProgressView board({2, false});
  board.update(run::DataPrepared{0, 10, 2000000, true, at_ms(0)});
  board.update(run::DataPrepared{1, 5, 1000000, false, at_ms(0)});
  CHECK(board.rows() == Lines{"data: 15 batches prepared, 3.0 MB | 1 worker(s) done"});
  CHECK(board.verdict().empty());
}

}  // namespace data_board_test
