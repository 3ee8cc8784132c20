#include "run/verdict/native_error.hpp"

#include "catch.hpp"

namespace native_error_test {

using namespace taas::run;

using Lines = std::vector<std::string>;

TEST_CASE("an uncaught C++ exception") {
  Lines lines{"epoch 1", "terminate called after throwing an instance of 'std::runtime_error'", "  what():  no data"};
  auto error = find_native_error(lines);
  REQUIRE(error);
  CHECK(error->statement == Lines{lines[1], lines[2]});
  CHECK(error->begin == 1);
  CHECK(error->end == 3);
}

TEST_CASE("torch's own stack is left out") {
  Lines lines{"terminate called after throwing an instance of 'c10::Error'", "  what():  Expected all tensors",
              "to be on the same device",
              "Exception raised from check at Tensor.cpp:1 (most recent call first):", "frame #0: c10::Error::Error"};
  CHECK(find_native_error(lines)->statement == Lines(lines.begin(), lines.begin() + 3));
}

TEST_CASE("a sanitizer's report: what, the first stack, the summary") {
  Lines lines{"=================================================================",
              "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1 at pc 0x2 bp 0x3 sp 0x4",
              "READ of size 4 at 0x1 thread T0",
              "    #0 0x5 in step(int) /src/a.cpp:3",
              "    #1 0x6 in main /src/a.cpp:9",
              "",
              "0x1 is located 0 bytes inside of 4-byte region",
              "    #0 0x7 in operator delete",
              "SUMMARY: AddressSanitizer: heap-use-after-free /src/a.cpp:3 in step(int)",
              "==7==ABORTING"};
  auto error = find_native_error(lines);
  REQUIRE(error);
  CHECK(error->statement == Lines{lines[1], lines[8]});
  CHECK(error->frames == Lines{lines[3], lines[4]});
}

TEST_CASE("errors right after each other are one: the first") {
  Lines lines{"free(): invalid pointer", "Fatal Python error: Aborted", "",
              "Current thread 0x1 (most recent call first):", "  File \"train.py\", line 3 in step"};
  CHECK(find_native_error(lines)->statement == Lines{"free(): invalid pointer"});
  lines.insert(lines.begin() + 1, 20, "and then it went on");
  auto error = find_native_error(lines);
  CHECK(error->statement == Lines{"Fatal Python error: Aborted"});
  CHECK(error->frames == Lines{"  File \"train.py\", line 3 in step"});
}

TEST_CASE("torch's nccl2 says why it aborts, and Python where") {
  Lines lines{
      "[rank1]:[E1129 11:08:02.364 ProcessGroupNCCL.cpp:503] [TC][rank=1][name=0] Aborting process on rank 1 due to "
      "error "
      "- nccl hit async error: remote process exited or there was a network error",
      "[rank1]:[E1129 11:08:02.370 Recorder.cpp:12] Flight Recorder trace successfully dumped.",
      "Fatal Python error: Aborted",
      "",
      "Thread 0x1 (most recent call first):",
      "  File \"train.py\", line 3 in step"};
  auto error = find_native_error(lines);
  REQUIRE(error);
  CHECK(error->statement ==
        Lines{"Aborting process on rank 1 due to error - nccl hit async error: remote process exited "
              "or there was a network error"});
  CHECK(error->frames == Lines{lines[5]});
}

TEST_CASE("how native errors begin") {
  for (const char* line :
       {"terminate called without an active exception", "double free or corruption (out)",
        "libc++abi: terminating due to uncaught exception of type int",
        "train: a.cpp:3: int main(): Assertion `x > 0' failed.", "*** stack smashing detected ***: terminated",
        "F1121 11:08:02.364104 1234 net.cc:12] Check failed: a == b", "WARNING: ThreadSanitizer: data race (pid=7)"}) {
    INFO(line);
    CHECK(starts_native_error(line));
  }
  for (const char* line : {"", "all is well", "Fine", "ERROR: could not find a sanitizer", "F is for failed"}) {
    INFO(line);
    CHECK_FALSE(starts_native_error(line));
  }
}

TEST_CASE("of faulthandler's stacks that of the thread that crashed is shown, or else the main thread's") {
  const std::vector<std::string> lines{"Fatal Python error: Segmentation fault",
                                       "",
                                       "Thread 0x00007f1 (most recent call first):",
                                       "  File \"threading.py\", line 3 in wait",
                                       "Thread 0x00007f2 (most recent call first):",
                                       "  File \"train.py\", line 9 in main",
                                       "",
                                       "Current thread 0x00007f3 (most recent call first):",
                                       "  File \"train.py\", line 5 in step",
                                       "  File \"train.py\", line 8 in main",
                                       "",
                                       "Extension modules: numpy (total: 1)"};
  auto error = find_native_error(lines);
  REQUIRE(error);
  CHECK(error->frames == std::vector{lines[8], lines[9]});
  CHECK(error->end == lines.size());
  auto without = lines;
  without[8] = "  <no Python frame>";
  without[9] = "";
  CHECK(find_native_error(without)->frames == std::vector{lines[5]});
  auto first = std::vector(lines.begin() + 7, lines.end());
  first.insert(first.begin(), lines.begin(), lines.begin() + 2);
  first.insert(first.end(), lines.begin() + 2, lines.begin() + 4);
  CHECK(find_native_error(first)->frames == std::vector{lines[8], lines[9]});
}

TEST_CASE("the abort that follows an error is not another one, unless the program went on") {
  std::vector<std::string> lines{"terminate called after throwing an instance of 'c10::DistBackendError'",
                                 "  what():  Watchdog caught collective operation timeout",
                                 "Exception raised from checkTimeout",
                                 "frame #0: c10::Error::Error",
                                 "",
                                 "Fatal Python error: Aborted",
                                 "",
                                 "Thread 0x00007f2 (most recent call first):",
                                 "  File \"train.py\", line 9 in main"};
  auto error = find_native_error(lines);
  REQUIRE(error);
  CHECK(error->statement == std::vector{lines[0], lines[1]});
  CHECK(error->frames == std::vector{lines[8]});
  CHECK(error->end == lines.size());
  lines.insert(lines.begin() + 5, 20, "step done");
  CHECK(find_native_error(lines)->statement.front() == "Fatal Python error: Aborted");
}

}  // namespace native_error_test
