#include "run/verdict/hint.hpp"

#include <csignal>

#include "catch.hpp"

namespace hint_test {

using namespace taas;
using namespace taas::run;

TEST_CASE("a full /dev/shm is named with its size and how a container gets more") {
  constexpr std::int64_t kDockers = 64 << 20;
  for (const char* text : {"RuntimeError: unable to write to file </torch_7_123_0>: No space left on device (28)",
                           "OSError: [Errno 28] No space left on device: '/dev/shm/x'",
                           "RuntimeError: DataLoader worker (pid 5) is killed by signal: Bus error. It is possible "
                           "that dataloader's workers "
                           "are out of shared memory. Please try to raise your shared memory limit.",
                           "misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-2 to 9637892 bytes, No "
                           "space left on device"}) {
    INFO(text);
    auto hint = find_hint(Cause::kException, {1}, text, Gpus::kOwn, {}, kDockers);
    CHECK_THAT(hint, ContainsSubstring("/dev/shm (64 MiB) is full"));
    CHECK_THAT(hint, ContainsSubstring("--shm-size"));
  }
  CHECK_THAT(find_hint(Cause::kSignal, {0, SIGBUS}, "", Gpus::kOwn, {}, kDockers), ContainsSubstring("64 MiB"));
  CHECK_THAT(find_hint(Cause::kException, {1}, "OSError: [Errno 28] No space left on device: 'model.pt'", Gpus::kOwn,
                       {}, kDockers),
             ContainsSubstring("a disk is full"));
}

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
      {Cause::kExitCode, {1}, "/usr/bin/python3: No module named train", "--dry-run"},
      {Cause::kException, {1}, "RuntimeError: DataLoader worker (pid 5) is killed by signal: Bus error.", "/dev/shm"},
      {Cause::kExitCode,
       {127},
       "./train: symbol lookup error: ./train: undefined symbol: _ZN3c105Error",
       "another torch"},
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

TEST_CASE("a breakpoint in a rank that has no terminal is told the way") {
  CHECK_THAT(find_hint(Cause::kException, {1}, "bdb.BdbQuit"), ContainsSubstring("--debug-rank"));
  CHECK_THAT(find_hint(Cause::kException, {1}, "EOFError: EOF when reading a line"), ContainsSubstring("--debug-rank"));
}

TEST_CASE("no hint is better than a wrong one") {
  CHECK(find_hint(Cause::kException, {1}, "ValueError: bad shape").empty());
  CHECK(find_hint(Cause::kExitCode, {42}, "").empty());
  CHECK(find_hint(Cause::kSignal, {0, SIGSEGV}, "").empty());
}

}  // namespace hint_test
