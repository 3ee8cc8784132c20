#include "run/verdict/peer_loss.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace taas::run {
namespace {

bool contains_any(std::string_view text, std::span<const std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](auto word) { return text.find(word) != text.npos; });
}

// As torch 2.4 to 2.15, gloo and NCCL 2.14 to 2.30 put it. A test looks for them in the installed torch.
constexpr std::array<std::string_view, 21> kLostPeerTexts{
    "Connection closed by peer",         // gloo
    "Connection closed by remote peer",  // NCCL
    "Connection reset by peer",          // the C library
    "Broken pipe",
    "Connection was likely closed",  // TCPStore's client
    "failed to recv, got 0 bytes",   // ... until 2.7
    "recvValue failed",
    "recvValueWithTimeout failed",
    "recvVector failed",
    "sendBytes failed",
    "DistNetworkError",
    "The client socket has timed out",
    "The client socket has failed to connect",
    "Socket closed",  // gloo
    "connectFullMesh failed",
    "failed to pass monitoredBarrier",                                   // on rank 0, and names who did not come
    "successfully reached monitoredBarrier, but received errors while",  // on others, once rank 0 has raised that
    "remote process exited or there was a network error",                // NCCL
    "ncclRemoteError",
    "NCCL communicator was aborted",
    "NCCL operations have failed or timed out",
};

// A port that is taken is a DistNetworkError too, but nobody else's fault. A GPU that fails ends collectives as well.
constexpr std::array<std::string_view, 7> kOwnFault{"EADDRINUSE",
                                                    "ddress already in use",
                                                    "has failed to listen",
                                                    "device-side assert triggered",
                                                    "an illegal memory access was encountered",
                                                    "uncorrectable ECC error encountered",
                                                    "unhandled cuda error"};

// These say it as well, of a peer that may be alive.
constexpr std::array<std::string_view, 6> kTimeout{"Watchdog caught collective operation timeout",  // NCCL
                                                   "timeout watchdog detected operation timeout",   // nccl2
                                                   "timeout - collective operation timed out",
                                                   "Work timed out during finalize",
                                                   "Timed out waiting ",  // gloo
                                                   "Application timeout caused pair closure"};

constexpr std::array<std::string_view, 4> kStoreTimeout{"wait timeout after ", "waiting for clients", "DistStoreError",
                                                        "Socket Timeout"};

}  // namespace

bool tells_of_lost_peer(std::string_view text) {
  return (contains_any(text, kLostPeerTexts) || contains_any(text, kTimeout)) && !contains_any(text, kOwnFault);
}

bool names_lost_peer(std::string_view text) {
  return text.find("failed to pass monitoredBarrier") != text.npos && tells_of_lost_peer(text);
}

bool tells_of_timeout(std::string_view text) { return contains_any(text, kTimeout); }

bool tells_of_store_timeout(std::string_view text) { return contains_any(text, kStoreTimeout); }

}  // namespace taas::run
