#include "run/verdict/fatal_error.hpp"

#include "catch.hpp"
#include "run/scenario.hpp"

namespace fatal_error_test {

using namespace taas::run;

using Kind = FatalError::Kind;
using Lines = std::vector<std::string>;

namespace {

const Lines kTraceback{"Traceback (most recent call last):",
                       "  File \"/home/u/train.py\", line 12, in <module>",
                       "    main()",
                       "  File \"/home/u/train.py\", line 8, in main",
                       "    load('weights.pt')",
                       "  File \"/home/u/train.py\", line 3, in load",
                       "    raise ValueError(path)",
                       "ValueError: bad shape"};

Lines joined(Lines first, const Lines& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Lines numbered(int count) {
  Lines lines;
  for (int i = 0; i < count; ++i) lines.push_back("line " + std::to_string(i));
  return lines;
}

}  // namespace

TEST_CASE("an excerpt keeps the exception and the nearest frames that fit") {
  auto error = find_fatal_error(said(kTraceback));
  CHECK(error.kind == Kind::kPython);
  CHECK(excerpt(error, 10) == Lines(kTraceback.begin() + 1, kTraceback.end()));
  CHECK(excerpt(error, 5) == Lines(kTraceback.begin() + 3, kTraceback.end()));
  CHECK(excerpt(error, 4) == Lines(kTraceback.begin() + 5, kTraceback.end()));
  CHECK(excerpt(error, 3) == Lines(kTraceback.begin() + 5, kTraceback.end()));
  CHECK(excerpt(error, 1) == Lines{"ValueError: bad shape"});
}

TEST_CASE("a long message leaves room for the nearest frame") {
  auto lines = joined(kTraceback, numbered(8));
  auto shown = excerpt(find_fatal_error(said(lines)), 5);
  CHECK(shown == Lines{kTraceback[5], kTraceback[6], kTraceback[7], "line 0", "line 1"});
}

TEST_CASE("warnings of the shutdown do not hide the error, a program that goes on does") {
  CHECK(
      find_fatal_error(said(joined(kTraceback, {"", "[W1121 socket.cpp:469] destroy_process_group() was not called"})))
          .kind == Kind::kPython);
  auto error = find_fatal_error(said(joined(joined(kTraceback, {""}), numbered(40))));
  CHECK(error.kind == Kind::kNone);
  CHECK(excerpt(error, 2) == Lines{"line 38", "line 39"});
}

TEST_CASE("a long message, and torch's stack below it, belong to the error") {
  Lines stack{"Exception raised from recvBytes at Utils.hpp:679 (most recent call first):"};
  for (int i = 0; i < 50; ++i) stack.push_back("frame #" + std::to_string(i) + ": <unknown function>");
  CHECK(find_fatal_error(said(joined(kTraceback, stack))).kind == Kind::kPython);
  Lines keys;
  for (int i = 0; i < 100; ++i) keys.push_back("\tsize mismatch for layer " + std::to_string(i));
  CHECK(find_fatal_error(said(joined(kTraceback, keys))).kind == Kind::kPython);
}

TEST_CASE("an abort of the shutdown does not hide the exception before it") {
  Lines abort{"terminate called without an active exception"};
  CHECK(find_fatal_error(said(joined(kTraceback, abort))).statement == Lines{"ValueError: bad shape"});
  auto error = find_fatal_error(said(joined(joined(joined(kTraceback, {""}), numbered(20)), abort)));
  CHECK(error.kind == Kind::kNative);
  CHECK(error.statement == abort);
}

TEST_CASE("the last exception of a chain counts, unless it only tells of a lost peer") {
  const Lines during{"", "During handling of the above exception, another exception occurred:", ""};
  const Lines closed{"Traceback (most recent call last):", "  File \"a.py\", line 9, in g",
                     "RuntimeError: Connection closed by peer"};
  const Lines second{"Traceback (most recent call last):", "  File \"a.py\", line 9, in g", "OSError: other"};
  CHECK(find_fatal_error(said(joined(joined(kTraceback, during), second))).statement == Lines{"OSError: other"});
  CHECK(find_fatal_error(said(joined(joined(kTraceback, during), closed))).statement == Lines{"ValueError: bad shape"});
  auto unrelated = find_fatal_error(said(joined(joined(kTraceback, {"", "retrying", ""}), closed)));
  CHECK(unrelated.statement == Lines{"RuntimeError: Connection closed by peer"});
}

TEST_CASE("of an exception group the first exception is named, with its frames") {
  const Lines group{"  + Exception Group Traceback (most recent call last):",
                    "  |   File \"/home/u/train.py\", line 8, in <module>",
                    "  |     asyncio.run(main())",
                    "  |            ^^^^^^^^^^^^",
                    "  |   File \"/usr/lib/python3.11/asyncio/taskgroups.py\", line 145, in __aexit__",
                    "  |     raise me from None",
                    "  | ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)",
                    "  +-+---------------- 1 ----------------",
                    "    | Traceback (most recent call last):",
                    "    |   File \"/home/u/train.py\", line 4, in load",
                    "    |     raise ValueError(path)",
                    "    | ValueError: bad shape",
                    "    +---------------- 2 ----------------",
                    "    | Traceback (most recent call last):",
                    "    |   File \"/home/u/train.py\", line 5, in save",
                    "    |     raise OSError()",
                    "    | OSError",
                    "    +------------------------------------"};
  const Lines excerpted{"  File \"/home/u/train.py\", line 4, in load", "    raise ValueError(path)",
                        "ValueError: bad shape"};
  CHECK(excerpt(find_fatal_error(said(group)), 10) == excerpted);
  Lines prefixed;
  for (const auto& line : group) prefixed.push_back("[rank3]: " + line);
  CHECK(excerpt(find_fatal_error(said(prefixed)), 10) == excerpted);
  auto later = find_fatal_error(said(joined(group, kTraceback)));
  CHECK(later.statement == Lines{"ValueError: bad shape"});
  CHECK(later.frames.size() == 3);
}

TEST_CASE("frames that faulthandler prints are no syntax error: what happened is named") {
  const Lines report{"Fatal Python error: Segmentation fault",
                     "",
                     "Current thread 0x00007f74b6260b80 (most recent call first):",
                     "  File \"/home/u/train.py\", line 519 in step",
                     "  File \"/home/u/train.py\", line 1 in <module>",
                     "",
                     "Extension modules: numpy._core._multiarray_umath, torch._C (total: 2)"};
  auto error = find_fatal_error(said(report));
  CHECK(error.kind == Kind::kNative);
  CHECK(excerpt(error, 10) == Lines{report[0], report[3], report[4]});
}

TEST_CASE("native reports begin with what happened") {
  Lines lines{"==7==ERROR: AddressSanitizer: heap-use-after-free", "    #0 0x5 in step(int) a.cpp:3",
              "    #1 0x6 in main a.cpp:9", "", "SUMMARY: AddressSanitizer: heap-use-after-free a.cpp:3"};
  auto error = find_fatal_error(said(lines));
  CHECK(excerpt(error, 10) == Lines{lines[0], lines[4], lines[1], lines[2]});
  CHECK(excerpt(error, 3) == Lines{lines[0], lines[4], lines[1]});
}

TEST_CASE("what @record wrote counts more than the last lines") {
  auto evidence = said({"something else"});
  evidence.error_file = R"({"message": {"message": "ValueError: x", "extraInfo": {"py_callstack":
    "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    f()\nValueError: x\n"}}})";
  CHECK(excerpt(find_fatal_error(evidence), 5) == Lines{"  File \"a.py\", line 1, in f", "    f()", "ValueError: x"});
  evidence.error_file = R"({"message": "no data"})";
  CHECK(excerpt(find_fatal_error(evidence), 5) == Lines{"no data"});
  evidence.error_file = "broken";
  CHECK(excerpt(find_fatal_error(evidence), 5) == Lines{"something else"});
}

TEST_CASE("a silent end shows the last lines that are not empty") {
  CHECK(excerpt(find_fatal_error(said({"a", "", "b", "  "})), 5) == Lines{"a", "b"});
  CHECK(excerpt(find_fatal_error(said({})), 5).empty());
}

TEST_CASE("words of a lost peer count where they are the last") {
  CHECK(find_fatal_error(said({"step", "error: Connection reset by peer"})).only_lost_a_peer());
  CHECK_FALSE(find_fatal_error(said(joined({"Connection reset by peer"}, numbered(5)))).only_lost_a_peer());
  CHECK_FALSE(find_fatal_error(said(joined({"warning: Connection reset by peer"}, kTraceback))).only_lost_a_peer());
  CHECK(find_fatal_error(raised("torch.distributed.DistStoreError: wait timeout after 5ms, keys: /x", 0))
            .timed_out_in_store());
}

TEST_CASE("a traceback alone does not prove that a rank has failed") {
  using namespace std::chrono_literals;
  const auto by_hook = [](int rank, const Lines& after = {}, std::size_t skipped = 1) {
    auto lines = kTraceback;  // without its outermost frames where the program has called the hook below them
    lines.erase(lines.begin() + 1, lines.begin() + static_cast<std::ptrdiff_t>(skipped));
    for (auto& line : lines) line = fmt::format("[rank{}]: {}", rank, line);
    return joined(lines, after);
  };
  auto second_group = by_hook(3);
  for (auto& line : second_group) line = "[rank3]: " + line;
  const auto caught = joined({"Exception in thread writer (run):"}, kTraceback);
  const SignsOfLife rests{
      .rests = true, .waits_for_lock = true, .silent_for = 6s, .argv = {"python3", "-u", "train.py", "--lr", "1"}};
  auto with = [](SignsOfLife signs, auto change) {
    change(signs);
    return signs;
  };
  struct Case {
    const char* what;
    Lines lines;
    SignsOfLife signs;
    std::optional<Lingering> judged;
  };
  const Case cases[]{
      {"it says so itself", numbered(20), with({}, [](auto& s) { s.main_has_raised = true; }), Lingering::kFailed},
      {"for torch's hook", by_hook(3), rests, Lingering::kFailed},
      {"for torch's hook, of a second group", second_group, rests, Lingering::kFailed},
      {"it would say so itself", by_hook(3), with(rests, [](auto& s) { s.would_have_said = true; }), std::nullopt},
      {"the hook, below the program's own end", by_hook(3, {}, 3), rests, std::nullopt},
      {"another program's", by_hook(3), with(rests, [](auto& s) { s.argv[2] = "start.py"; }), std::nullopt},
      {"the hook of another rank, a child perhaps", by_hook(1), rests, std::nullopt},
      {"more was said since, a prompt perhaps", by_hook(3, {">>> "}), rests, std::nullopt},
      {"it waits for input", by_hook(3), with(rests, [](auto& s) { s.waits_for_lock = false; }), std::nullopt},
      {"it runs", by_hook(3), with(rests, [](auto& s) { s.rests = false; }), std::nullopt},
      {"torch's @record", kTraceback, with(rests, [](auto& s) { s.error_is_recorded = true; }), Lingering::kFailed},
      {"who knows", kTraceback, rests, std::nullopt},
      {"who knows, for long", kTraceback, with(rests, [](auto& s) { s.silent_for = 12s; }), Lingering::kSilent},
      {"a thread's", caught, with(rests, [](auto& s) { s.silent_for = 12s; }), std::nullopt},
      {"the program went on", joined(joined(kTraceback, {""}), numbered(20)),
       with(rests, [](auto& s) { s.silent_for = 12s; }), std::nullopt},
      {"no error at all", numbered(3), with(rests, [](auto& s) { s.silent_for = 12s; }), std::nullopt},
  };
  for (const auto& [what, lines, signs, judged] : cases) {
    CAPTURE(what);
    CHECK(judge_lingering(taas::Rank{3}, said(lines), signs) == judged);
  }
}

TEST_CASE("what a rank raised is found below what its threads say") {
  auto thread = joined({"Exception in thread writer (run):"},
                       {"Traceback (most recent call last):", "  File \"w.py\", line 1, in run", "OSError: gone"});
  RankLingers lingering;
  lingering.evidence = said(joined(joined(kTraceback, thread), numbered(30)));
  lingering.evidence.first_error_at = taas::Instant(std::chrono::seconds(1));
  CHECK(find_raised(lingering).statement == find_fatal_error(said(kTraceback)).statement);
}

TEST_CASE("what a rank had caught before it raised in a form of its own is not taken for what it raised") {
  RankLingers lingering;  // no error was seen when it raised
  lingering.evidence = said(joined(joined(kTraceback, {""}), numbered(30)));
  CHECK(find_raised(lingering).kind == Kind::kNone);
}

TEST_CASE("a line is never too long to be read") {
  auto shown = excerpt(find_fatal_error(said({std::string(5000, 'x')})), 5);
  CHECK(shown.at(0).size() == 200);
}

}  // namespace fatal_error_test
