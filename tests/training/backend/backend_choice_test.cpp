#include "training/backend/backend_choice.hpp"

#include "catch.hpp"
#include "taas/error.hpp"

namespace backend_choice_test {

using namespace taas;

namespace {

BackendOffer with(const char* gpu) { return {Backend::kAuto, gpu, ""}; }
const BackendOffer kNoGpu{};
const BackendOffer kTooFew{Backend::kAuto, "", "it sees 2 and its LOCAL_RANK is 2"};

}  // namespace

TEST_CASE("Ranks with a GPU each take nccl") {
  auto choice = choose_backend({with("a"), with("b")});
  CHECK(choice.nccl);
  CHECK(choice.reason.empty());
}

TEST_CASE("Left alone, ranks that cannot use nccl take gloo, and say why where there are GPUs") {
  CHECK_FALSE(choose_backend({kNoGpu, kNoGpu}).nccl);
  CHECK(choose_backend({kNoGpu, kNoGpu}).reason.empty());
  CHECK(choose_backend({with("a"), kNoGpu}).reason == "rank 1 has no GPU");
  CHECK(choose_backend({with("a"), with("b"), kTooFew}).reason ==
        "rank 2 has no GPU: it sees 2 and its LOCAL_RANK is 2");
  auto shared = choose_backend({with("a"), with("b"), with("a")});
  CHECK_FALSE(shared.nccl);
  CHECK_THAT(shared.reason, ContainsSubstring("ranks 0 and 2 have the same GPU, a: give each its own"));
}

TEST_CASE("A wish is followed or refused, by the ranks' numbers") {
  const BackendOffer gloo{Backend::kGloo, "", ""}, nccl{Backend::kNccl, "a", ""}, in_vain{Backend::kNccl, "", ""};
  CHECK_FALSE(choose_backend({with("a"), gloo}).nccl);
  CHECK(choose_backend({with("a"), gloo}).reason.empty());
  CHECK(choose_backend({nccl, with("b")}).nccl);
  CHECK_THROWS_WITH(choose_backend({gloo, nccl}), "rank 1 asks for nccl but rank 0 asks for gloo");
  CHECK_THROWS_WITH(choose_backend({nccl, kTooFew}),
                    ContainsSubstring("rank 0 asks for nccl but rank 1 has no GPU: it"));
  CHECK_THROWS_WITH(choose_backend({in_vain}), "rank 0 asks for nccl but rank 0 has no GPU");
  CHECK_THROWS_WITH(choose_backend({nccl, with("a")}), ContainsSubstring("--oversubscribe"));
}

TEST_CASE("An offer travels as text") {
  const BackendOffer offer{Backend::kNccl, "GPU-1 of host a/b", "some reason"};
  auto arrived = parse_offer(print_offer(offer));
  CHECK(arrived.wish == offer.wish);
  CHECK(arrived.gpu == offer.gpu);
  CHECK(arrived.problem == offer.problem);
  CHECK_THROWS_AS(parse_offer("either"), ConfigError);
  CHECK_THROWS_AS(parse_offer("mpi\t\t"), ConfigError);
}

TEST_CASE("The only visible GPU is the rank's own, whatever its local rank is") {
  CHECK(gpu_index(0, 0) == -1);
  CHECK(gpu_index(5, 1) == 0);
  CHECK(gpu_index(1, 2) == 1);
  CHECK(gpu_index(2, 2) == -1);
}

TEST_CASE("A rank with several GPUs begins at the first of its own, whether it sees others or not") {
  CHECK(gpu_index(3, 0, 2) == -1);
  CHECK(gpu_index(3, 1, 2) == 0);
  CHECK(gpu_index(3, 2, 2) == 0);
  CHECK(gpu_index(3, 8, 2) == 6);
  CHECK(gpu_index(4, 8, 2) == -1);
}

}  // namespace backend_choice_test
