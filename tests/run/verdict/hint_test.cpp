#include "run/verdict/hint.hpp"

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
      {Cause::kException,
       {1},
       "RuntimeError: Gloo connectFullMesh failed with [pair.h:311] Connect timeout [127.0.0.1]:25837",
       "--interface"},
      {Cause::kException, {1}, "ModuleNotFoundError: No module named 'lightning'", "--dry-run"},
      {Cause::kExitCode, {1}, "/usr/bin/python3: No module named train", "is the module's name right"},
      {Cause::kExitCode,
       {1},
       "python: Error while finding module specification for 'a.b' (ModuleNotFoundError: No module named 'a')",
       "is the module's name right"},
      {Cause::kException, {1}, "ImportError: attempted relative import with no known parent package", "-m package."},
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

TEST_CASE("faults of a GPU and of NCCL have a way out") {
  for (auto [text, hint] : std::initializer_list<std::pair<const char*, const char*>>{
           {"RuntimeError: CUDA error: device-side assert triggered", "CUDA_LAUNCH_BLOCKING"},
           {"what():  CUDA error: an illegal memory access was encountered", "CUDA_LAUNCH_BLOCKING"},
           {"RuntimeError: CUDA error: uncorrectable ECC error encountered", "Xid"},
           {"ncclInvalidUsage: Duplicate GPU detected : rank 3 and rank 0 both on CUDA device f000", "LOCAL_RANK"},
           {"Aborting process on rank 1 due to error - nccl hit async error: internal error", "TORCH_DIST_USE_NCCL2=0"},
           {"ncclSystemError: System call (e.g. socket, malloc) or external library call failed", "NCCL_DEBUG=INFO"},
       }) {
    INFO(text);
    CHECK_THAT(find_hint(Cause::kSignal, {0, SIGABRT}, text), ContainsSubstring(hint));
  }
}

TEST_CASE("who shares GPUs already is not told to share them") {
  const char* wrong_device = "RuntimeError: CUDA error: invalid device ordinal";
  CHECK_THAT(find_hint(Cause::kException, {1}, wrong_device, Gpus::kShared), ContainsSubstring("device 0"));
  CHECK_THAT(find_hint(Cause::kException, {1}, wrong_device, Gpus::kShared), !ContainsSubstring("--oversubscribe"));
  CHECK_THAT(find_hint(Cause::kException, {1}, "CUDA out of memory", Gpus::kShared), ContainsSubstring("ranks share"));
  CHECK_THAT(find_hint(Cause::kExitCode, {1}, "python: No module named train", Gpus::kShared),
             ContainsSubstring("is the module's name right"));
  CHECK_THAT(find_hint(Cause::kException, {1}, "Address already in use", Gpus::kShared),
             ContainsSubstring("--master-port"));
}

TEST_CASE("who else fills a GPU is named") {
  auto hint = find_hint(Cause::kException, {1},
                        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
                        "capacity of 79.10 GiB of which 1.20 GiB is free. Process 4711 has 60.00 GiB memory in use. "
                        "Process 12 has 512.00 MiB memory in use. Including non-PyTorch memory, this process has 17.00 "
                        "GiB memory in use.");
  CHECK_THAT(hint, ContainsSubstring("; beside this rank process 4711 holds 60.00 GiB, process 12 holds 512.00 MiB"));
}

TEST_CASE("no hint is better than a wrong one") {
  CHECK(find_hint(Cause::kException, {1}, "ValueError: bad shape").empty());
  CHECK(find_hint(Cause::kExitCode, {42}, "").empty());
  CHECK(find_hint(Cause::kSignal, {0, SIGSEGV}, "").empty());
}

}  // namespace hint_test
