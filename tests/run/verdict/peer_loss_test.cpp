#include "run/verdict/peer_loss.hpp"

#include "catch.hpp"

namespace peer_loss_test {

using namespace taas::run;

TEST_CASE("words of those who lost a peer") {
  for (const char* words : {
           "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:561] Connection closed by peer [::1]:2",
           "RuntimeError: [../gloo/transport/tcp/pair.cc:598] Connection reset by peer",
           "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to "
           "complete",
           "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3763, remote process exited or "
           "there was "
           "a network error, NCCL version 2.28.8",
           "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
           "  what():  NCCL communicator was aborted on rank 1. ",
           "Aborting process on rank 1 due to error - nccl hit async error: remote process exited or there was a "
           "network "
           "error",
           "Aborting process on rank 1 due to timeout - timeout watchdog detected operation timeout",
           "RuntimeError: Work timed out during finalize",
           "  what():  [PG 1 Rank 7] Process group watchdog thread terminated with exception: [Rank 7] Watchdog caught "
           "collective operation timeout: WorkNCCL(SeqNum=199)",
           "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed. Did the "
           "remote "
           "server shutdown or crash?",
           "RuntimeError: failed to recv, got 0 bytes",
           "BrokenPipeError: [Errno 32] Broken pipe",
           "RuntimeError: Rank 0 successfully reached monitoredBarrier, but received errors... Ranks 1 failed to pass "
           "monitoredBarrier in 1000 ms",
           "RuntimeError: Rank 2 successfully reached monitoredBarrier, but received errors while waiting for "
           "send/recv "
           "from rank 0. Please check rank 0 logs for faulty rank.\n Original exception: ",
       }) {
    INFO(words);
    CHECK(tells_of_lost_peer(words));
  }
}

TEST_CASE("words of those with a trouble of their own") {
  for (const char* words : {
           "ValueError: bad shape",
           "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. "
           "port: "
           "29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
           "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.",
           "ncclUnhandledCudaError: Call to CUDA function failed.",
           "Aborting process on rank 1 due to error - nccl hit async error: unhandled cuda error (run with "
           "NCCL_DEBUG=INFO for details)",
           "pycurl.error: (28, 'Operation timed out after 5001 milliseconds with 0 bytes received')",
           "CUDA error: device-side assert triggered. NCCL communicator was aborted on rank 1.",
           "",
       }) {
    INFO(words);
    CHECK_FALSE(tells_of_lost_peer(words));
  }
}

TEST_CASE("words of a collective that did not end in time") {
  for (const char* words : {"Watchdog caught collective operation timeout: NCCL operation timed out",
                            "Aborting process on rank 1 due to timeout - timeout watchdog detected operation timeout",
                            "Aborting process on rank 1 due to timeout - collective operation timed out",
                            "RuntimeError: Work timed out during finalize"}) {
    INFO(words);
    CHECK(tells_of_timeout(words));
  }
  CHECK_FALSE(tells_of_timeout("Aborting process on rank 1 due to error - nccl hit async error: internal error"));
}

TEST_CASE("words that name who did not come") {
  CHECK(names_lost_peer("RuntimeError: [Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 1000 ms"));
  CHECK_FALSE(names_lost_peer("RuntimeError: Rank 2 successfully reached monitoredBarrier, but received errors"));
}

TEST_CASE("words of those who waited in the store") {
  CHECK(tells_of_store_timeout(
      "torch.distributed.DistStoreError: wait timeout after 2000ms, keys: /default_pg/0//cpu//0/0"));
  CHECK(tells_of_store_timeout("Timed out after 2 seconds waiting for clients. 1/2 clients joined."));
  CHECK_FALSE(tells_of_store_timeout("TimeoutError: the read operation timed out"));
}

}  // namespace peer_loss_test
