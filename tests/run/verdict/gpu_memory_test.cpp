#include "run/verdict/gpu_memory.hpp"

#include "catch.hpp"
#include "run/scenario.hpp"

namespace gpu_memory_test {

using namespace taas;
using namespace taas::run;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr const char* kTorch =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB "
    "of which "
    "1.00 GiB is free. Process 811 has 60.00 GiB memory in use.";

Evidence found_full_gpu(std::vector<GpuHolder> holders) {
  auto evidence = raised(kTorch, 10);
  evidence.gpu = "2";
  evidence.gpu_holders = std::move(holders);
  return evidence;
}

/// Rank 1 of four, two a node, has failed; all_living() gives rank r the process id 100 + r.
Verdict judged(Evidence evidence) {
  auto record = all_living(4);
  record.exited({Generation{0}, Rank{1}, {1}, std::move(evidence), at_ms(20)});
  record.stop(SIGTERM, at_ms(20));
  return judge_failure(record, policy_for(4, 0, 2));
}

TEST_CASE("who holds a full GPU's memory is named, ranks of the run as such") {
  auto verdict = judged(found_full_gpu({{811, "jupyter", 60 * kGiB}, {100, "python3", 10 * kGiB}, {102, "", 0}}));
  CHECK_THAT(verdict.hint,
             ContainsSubstring("the GPU's memory is full: use a smaller batch; GPU 2's memory is held by process 811 "
                               "(jupyter): 60.0 GiB, rank 0: 10.0 GiB, process 102: an unknown amount"));
  CHECK_THAT(verdict.hint, !ContainsSubstring("60.00 GiB"));  // torch's own words would say it twice
}

TEST_CASE("of many holders the largest are named") {
  std::vector<GpuHolder> holders(7, {900, "x", kGiB});
  CHECK_THAT(judged(found_full_gpu(holders)).hint, ContainsSubstring("1.0 GiB, and 3 more"));
}

TEST_CASE("without the driver's answer torch's words are used, and only for a full GPU") {
  CHECK_THAT(judged(found_full_gpu({})).hint, ContainsSubstring("process 811 holds 60.00 GiB"));
  auto other = found_full_gpu({{811, "jupyter", 60 * kGiB}});
  other.last_lines.back() = "ValueError: bad shape";
  CHECK(judged(other).hint.empty());
}

TEST_CASE("a full GPU is known by its words") {
  for (const char* text :
       {kTorch, "what():  CUDA error: out of memory", "torch.OutOfMemoryError: HIP out of memory. Tried"}) {
    CHECK(tells_of_full_gpu(text));
  }
  CHECK_FALSE(tells_of_full_gpu(
      "RuntimeError: [enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory"));
}

}  // namespace gpu_memory_test
