#include "run/verdict/traceback.hpp"

#include "catch.hpp"

namespace traceback_test {

using namespace taas::run;

using Lines = std::vector<std::string>;

namespace {

const Lines kPlain{"epoch 1 done",
                   "Traceback (most recent call last):",
                   "  File \"/home/u/train.py\", line 12, in <module>",
                   "    main()",
                   "    ~~~~^^",
                   "  File \"/usr/lib/python3/dist-packages/torch/nn/module.py\", line 1751, in _wrapped_call_impl",
                   "    return self._call_impl(*args, **kwargs)",
                   "ValueError: bad shape"};

}  // namespace

TEST_CASE("a traceback is read: frames, what was raised, where it stands") {
  auto found = find_tracebacks(kPlain);
  REQUIRE(found.size() == 1);
  CHECK(found[0].raised == "ValueError: bad shape");
  REQUIRE(found[0].frames.size() == 2);
  CHECK(found[0].frames[0].where == kPlain[2]);
  CHECK(found[0].frames[0].source == "    main()");
  CHECK(found[0].begin == 1);
  CHECK(found[0].end == kPlain.size());
}

TEST_CASE("library frames are left out when there are own ones") {
  auto found = find_tracebacks(kPlain);
  REQUIRE(own_frames(found.at(0)).size() == 1);
  CHECK(own_frames(found.at(0))[0].where == kPlain[2]);
  found[0].frames.erase(found[0].frames.begin());
  CHECK(own_frames(found[0]).size() == 1);
}

TEST_CASE("torch's rank prefix is removed, and lines between that lack it are passed over") {
  Lines lines;
  for (const auto& line : kPlain) lines.push_back("[rank12]: " + line);
  lines.insert(lines.begin() + 4, "a line of another thread");
  lines.emplace_back("not the message");
  auto found = find_tracebacks(lines);
  REQUIRE(found.size() == 1);
  CHECK(found[0].raised == "ValueError: bad shape");
  CHECK(found[0].frames.size() == 2);
  CHECK(found[0].message.empty());
}

TEST_CASE("torch puts a prefix for each process group that the program has made") {
  Lines lines;
  for (const auto& line : kPlain) lines.push_back("[rank3]: [rank3]: " + line);
  auto found = find_tracebacks(lines);
  REQUIRE(found.size() == 1);
  CHECK(found[0].raised == "ValueError: bad shape");
  CHECK(found[0].prefix == "[rank3]: [rank3]: ");
}

TEST_CASE("only torch's prefix is a prefix") {
  CHECK(without_rank_prefix("[rank3]: text") == "text");
  CHECK(without_rank_prefix("[rank3]: [rank12]: text") == "text");
  for (const char* line : {"[rank3]:[W1121 Socket.cpp:1] warning", "[rank]: x", "[rank3] x", "rank3: x", "[rank3"}) {
    CHECK(without_rank_prefix(line) == line);
  }
}

TEST_CASE("chained exceptions are found as a chain") {
  Lines lines{"Traceback (most recent call last):",
              "  File \"a.py\", line 1, in f",
              "KeyError: 'x'",
              "",
              "During handling of the above exception, another exception occurred:",
              "",
              "Traceback (most recent call last):",
              "  File \"a.py\", line 3, in g",
              "ValueError: no x"};
  auto found = find_tracebacks(lines);
  REQUIRE(found.size() == 2);
  CHECK_FALSE(found[0].continues);
  CHECK(found[1].continues);
  lines[4] = "retrying";
  CHECK_FALSE(find_tracebacks(lines)[1].continues);
}

TEST_CASE("further lines of a message end where other output begins") {
  Lines lines{"Traceback (most recent call last):",
              "  File \"a.py\", line 1, in f",
              "RuntimeError: CUDA error: oops",
              "CUDA kernel errors might be asynchronously reported",
              "For debugging consider CUDA_LAUNCH_BLOCKING=1",
              "[W1121 11:08:02 socket.cpp:469] warning",
              "more"};
  auto found = find_tracebacks(lines);
  CHECK(found.at(0).message == Lines{lines[3], lines[4]});
}

TEST_CASE("a syntax error has no header; an interrupt no message") {
  Lines lines{"  File \"a.py\", line 3", "    foo(", "       ^", "SyntaxError: '(' was never closed"};
  auto found = find_tracebacks(lines);
  REQUIRE(found.size() == 1);
  CHECK(found[0].raised == lines[3]);
  CHECK(found[0].frames.at(0).source == "    foo(");
  auto interrupted = find_tracebacks(Lines{kPlain[1], kPlain[2], kPlain[3], "KeyboardInterrupt"});
  CHECK(interrupted.at(0).raised == "KeyboardInterrupt");
}

TEST_CASE("a data loader worker's own traceback is the last one") {
  Lines lines{kPlain[1],
              kPlain[2],
              kPlain[3],
              "KeyError: Caught KeyError in DataLoader worker process 0.",
              "Original Traceback (most recent call last):",
              "  File \"data.py\", line 5, in __getitem__",
              "    return self.items[i]",
              "KeyError: 7"};
  auto found = find_tracebacks(lines);
  REQUIRE(found.size() == 2);
  CHECK(found[1].raised == "KeyError: 7");
}

TEST_CASE("exceptions that Python ignores, and unfinished tracebacks, do not count") {
  CHECK(find_tracebacks(Lines{"Exception ignored in: <function Pool.__del__>", kPlain[1], kPlain[2], "OSError: x"})
            .empty());
  CHECK(find_tracebacks(Lines{kPlain[1], kPlain[2], kPlain[3]}).empty());
  CHECK(find_tracebacks(Lines{kPlain[1]}).empty());
  CHECK(find_tracebacks(Lines{}).empty());
}

TEST_CASE("how fatal errors begin") {
  for (const char* line : {"Traceback (most recent call last):", "[rank3]: Traceback (most recent call last):",
                           "  File \"train.py\", line 3", "terminate called after throwing an instance of 'int'",
                           "==12==ERROR: AddressSanitizer: SEGV on unknown address"}) {
    INFO(line);
    CHECK(starts_fatal_error(line));
  }
  for (const char* line :
       {"", "epoch 1", "  File \"train.py\", line 3, in f", "ValueError: bad shape", "error: none"}) {
    INFO(line);
    CHECK_FALSE(starts_fatal_error(line));
  }
}

}  // namespace traceback_test
