#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace taas {

struct BackendArguments {
  c10::intrusive_ptr<c10d::Store> store;
  int rank = 0;
  int world_size = 1;
  std::chrono::milliseconds timeout{};
  std::string group_uid = "0";  ///< in torch's records
};

/// Uses the interface of GLOO_SOCKET_IFNAME, else the loopback one when the ranks meet there (`master_address`), else
/// that of this machine's host name.
c10::intrusive_ptr<c10d::Backend> make_gloo(const BackendArguments& arguments, const std::string& master_address);

/// gloo reads messages in a thread of its own. When one has more bytes than the tensor that waits for it, gloo throws
/// there, where nobody can catch it, and the process ends. A message does not say what it is for, so that the ranks
/// would have to exchange another one for each collective to know before (InitOptions::check_collectives does that).
///
/// From here on a process that ends by an exception of gloo's ends with one line that says why and what to do. The
/// program's own std::terminate_handler follows; libstdc++'s does not. `begun_last` is asked then: "rank 1, all_reduce
/// of (4) Float", or nothing.
void explain_end_by_gloo(std::string (*begun_last)());

/// Counts the GPUs that can be used; 0 without a driver, without GPUs, or when this build has no CUDA (no_nccl.cpp).
///
/// A program that links libtorch_cuda starts 0.1 s later (1.1 s from a cold disk) and takes 250 MB more in each rank,
/// used or not. So only the plugin libtaas_nccl.so links it. Where this machine has an NVIDIA driver, and
/// CUDA_VISIBLE_DEVICES does not hide all GPUs, it is loaded before main(): ATen and autograd look once for CUDA, on
/// their first use, and would not find it later.
int cuda_device_count();

/// A name of a visible GPU that no other one has: its host, as NCCL tells hosts apart, and its UUID.
std::string gpu_name(int index);

/// Connects this rank with the others at once. Throws ConfigError when cuda_device_count() is 0.
///
/// What a rank does whose peer is lost is chosen here: TORCH_NCCL_ASYNC_ERROR_HANDLING=1, torch's older way and the
/// launcher's default, aborts the communicators before it ends the process, so that a thread that waits for a result
/// can go on with half of it. 3 ends the process and leaves them alone.
c10::intrusive_ptr<c10d::Backend> make_nccl(const BackendArguments& arguments, int gpu);

}  // namespace taas
