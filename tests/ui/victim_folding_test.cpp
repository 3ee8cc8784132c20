#include "ui/victim_folding.hpp"

#include "catch.hpp"
#include "ui/helpers.hpp"
#include "ui/plain_renderer.hpp"

namespace victim_folding_test {

using namespace taas;
using namespace taas::ui;

namespace {

const std::vector<std::string> kLostPeer{
    "Traceback (most recent call last):", "  File \"train.py\", line 3, in <module>", "    dist.all_reduce(t)",
    "RuntimeError: [pair.cc:561] Connection closed by peer [127.0.0.1]:24984."};

/// A console that shows the first `shown` of four ranks.
struct Shown {
  explicit Shown(int shown = 1)
      : options(options_for(4, shown)), view(options, std::make_unique<PlainRenderer>(options, out, err)) {}

  void prints(int rank, const std::vector<std::string>& lines, long when = 10, std::string prefix = "") {
    for (const auto& text : lines) view.show(line(rank, prefix + text, when, Stream::kStderr));
  }
  void fails(int rank) { view.show(RunEvent{run::RankExited{Generation{0}, Rank{rank}, {1}, {}, at_ms(20)}}); }
  void reports(run::Verdict verdict) { view.show(RunAction{run::ReportFailure{std::move(verdict)}}); }

  TextSink out, err;
  RendererOptions options;
  VictimFolding view;
};

run::Verdict ended(run::Cause cause, std::string summary) {
  auto verdict = failure(-1, std::move(summary));
  verdict.cause = cause;
  return verdict;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& one : lines) text += one + "\n";
  return text;
}

}  // namespace

TEST_CASE("a rank that only lost its peer gets one line once it is known who failed") {
  Shown shown;
  shown.prints(0, kLostPeer, 10, "[rank0]: ");
  shown.prints(0, {"", "During handling of the above exception, another exception occurred:", "", kLostPeer[0],
                   kLostPeer[1], "torch.distributed.DistNetworkError: failed to recv, got 0 bytes"});
  shown.prints(0,
               {"checkpoint saved", "Fatal Python error: Aborted", "", "Thread 0x00007f2 (most recent call first):"});
  shown.fails(1);
  CHECK(shown.view.next_deadline() == std::nullopt);
  CHECK(shown.err.text.empty());
  shown.reports(failure(1, "rank 1 exited with code 1"));
  CHECK(
      shown.err.text ==
      "taas-run: rank 0: lost its peer (13 lines in its log)\ncheckpoint saved\ntaas-run: rank 1 exited with code 1\n");
}

TEST_CASE("who is to blame keeps its traceback, and so does everybody where nobody is") {
  Shown alone;
  alone.prints(0, kLostPeer);
  alone.reports(failure(0, "rank 0 raised"));
  CHECK(alone.err.text == joined(kLostPeer) + "taas-run: rank 0 raised\n");

  Shown missing;
  missing.prints(0, kLostPeer);
  missing.reports(ended(run::Cause::kNodesMissing, "nodes are missing"));
  CHECK(missing.err.text == joined(kLostPeer) + "taas-run: nodes are missing\n");
}

TEST_CASE("what says more than that a peer was lost is shown") {
  for (const char* more : {"KeyError: 'x'", "RuntimeError: cannot train"}) {  // raised while the loss was handled
    Shown shown;
    std::vector<std::string> lines = kLostPeer;
    for (const char* text : {"", "During handling of the above exception, another exception occurred:", "",
                             "Traceback (most recent call last):", "  File \"train.py\", line 5, in <module>", more})
      lines.emplace_back(text);
    shown.prints(0, lines);
    shown.fails(1);
    shown.reports(failure(1, "rank 1 exited with code 1"));
    CHECK(shown.err.text == joined(lines) + "taas-run: rank 1 exited with code 1\n");
  }
  for (const char* other : {"OSError: upload failed: Broken pipe", "BrokenPipeError: [Errno 32] Broken pipe",
                            "RuntimeError: [buffer.cc:78] Timed out waiting 3000ms for recv operation"}) {
    Shown shown;
    shown.prints(0, {kLostPeer[0], kLostPeer[1], other});
    CHECK(shown.err.text == joined({kLostPeer[0], kLostPeer[1], other}));
  }
  Shown stopped;  // nobody is to blame
  stopped.prints(0, kLostPeer);
  stopped.reports(ended(run::Cause::kStopped, "stopped by SIGINT"));
  CHECK(stopped.err.text == joined(kLostPeer) + "taas-run: stopped by SIGINT\n");
}

TEST_CASE("several victims share a line") {
  Shown shown(3);
  for (int rank : {0, 2}) shown.prints(rank, kLostPeer);
  shown.reports(ended(run::Cause::kNodeLost, "node 1 was lost"));
  CHECK(shown.err.text ==
        "taas-run: ranks 0,2: lost a peer (up to 4 lines in their logs)\ntaas-run: node 1 was lost\n");
}

TEST_CASE("another exception goes on as it comes, and what stands before its end soon") {
  Shown shown;
  shown.prints(0, {kLostPeer[0], kLostPeer[1]});
  CHECK(shown.err.text.empty());
  shown.prints(0, {"KeyError: 'x'"});
  CHECK(shown.err.text == joined({kLostPeer[0], kLostPeer[1], "KeyError: 'x'"}));

  Shown cut;
  cut.prints(0, {kLostPeer[0]});
  auto due = cut.view.next_deadline();
  REQUIRE(due);
  CHECK(*due > at_ms(10));
  cut.view.tick(*due);
  CHECK(cut.err.text == joined({kLostPeer[0]}));
  CHECK_FALSE(cut.view.next_deadline());
}

TEST_CASE("a rank that has caught its loss and goes on shows it, and so does the end of a run") {
  Shown shown;
  shown.prints(0, kLostPeer);
  shown.view.show(line(0, "waits for the others", 20));
  CHECK(shown.out.text == "waits for the others\n");
  shown.view.tick(*shown.view.next_deadline());
  CHECK(shown.err.text == joined(kLostPeer));
  shown.prints(0, kLostPeer);
  shown.view.finish();
  CHECK(shown.err.text == joined(kLostPeer) + joined(kLostPeer));
}

TEST_CASE("what is not shown is not held, nor what has no end") {
  Shown shown;
  shown.prints(1, kLostPeer);
  CHECK_FALSE(shown.view.next_deadline());
  shown.prints(0, kLostPeer);
  shown.prints(0, std::vector<std::string>(2000, "more"));
  CHECK_THAT(shown.err.text, ContainsSubstring(joined(kLostPeer) + "more\n"));
}

}  // namespace victim_folding_test
