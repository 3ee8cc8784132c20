#include "run/hint.hpp"

#include <csignal>

#include "catch.hpp"

namespace hint_test {

using namespace taas;
using namespace taas::run;

TEST_CASE("known causes have a way out") {
  struct Row {
    Cause cause;
    ExitStatus status;
    const char* text;
    const char* hint;
  };
  const Row rows[]{
      {Cause::kException, {1}, "torch.OutOfMemoryError: CUDA out of memory. Tried", "smaller batch"},
      {Cause::kException, {1}, "RuntimeError: CUDA error: invalid device ordinal", "--oversubscribe"},
      {Cause::kException, {1}, "OSError: [Errno 98] Address already in use", "--master-port"},
      {Cause::kException, {1}, "ModuleNotFoundError: No module named 'lightning'", "--dry-run"},
      {Cause::kExitCode, {1}, "/usr/bin/python3: No module named train", "--dry-run"},
      {Cause::kException, {1}, "RuntimeError: DataLoader worker (pid 5) is killed by signal: Bus error.", "/dev/shm"},
      {Cause::kOutOfMemory, {0, SIGKILL}, "No space left on device", "memory limit"},
      {Cause::kSignal, {0, SIGKILL}, "", "dmesg"},
      {Cause::kSignal, {0, SIGBUS}, "", "/dev/shm"},
      {Cause::kSignal, {0, SIGILL}, "", "another processor"},
      {Cause::kSignal, {0, SIGUSR1}, "", "passes this signal on"},
      {Cause::kStoreTimeout, {1}, "wait timeout after 5ms", "logs of the ranks"},
      {Cause::kSignal, {0, SIGABRT}, "terminate called without an active exception", "os._exit"},
  };
  for (const auto& row : rows) {
    INFO(row.text);
    CHECK_THAT(find_hint(row.cause, row.status, row.text), ContainsSubstring(row.hint));
  }
}

TEST_CASE("no hint is better than a wrong one") {
  CHECK(find_hint(Cause::kException, {1}, "ValueError: bad shape").empty());
  CHECK(find_hint(Cause::kExitCode, {42}, "").empty());
  CHECK(find_hint(Cause::kSignal, {0, SIGSEGV}, "").empty());
}

}  // namespace hint_test
