#include "run/verdict/hint.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <regex>
#include <span>

namespace taas::run {
namespace {

struct ByWords {
  std::string_view words;
  std::string_view hint;
};

constexpr std::string_view kLostGpu = "the GPU has failed: dmesg has an Xid; leave the node out, or reset it";

constexpr std::string_view kTwoOnOne =
    "two ranks use one GPU: choose it by LOCAL_RANK, or share GPUs with --oversubscribe";

/// Where GPUs are shared; before the others.
constexpr ByWords kBySharing[] = {
    {"invalid device ordinal", "each rank sees its GPU as device 0: choose the device by LOCAL_RANK, not by RANK"},
    {"CUDA out of memory", "ranks share the GPU's memory: start fewer, or use a smaller batch"},
    {"CUDA error: out of memory", "ranks share the GPU's memory: start fewer, or use a smaller batch"},
    {"torch.OutOfMemoryError", "ranks share the GPU's memory: start fewer, or use a smaller batch"},
};

constexpr std::string_view kNoSuchModule =
    "-m: is the module's name right, and is this the folder that holds it, or is it installed for the Python that ran?";

constexpr std::string_view kNccl2 =
    "this is torch's newer nccl, nccl2: --env NCCL_DEBUG=INFO says why, --env TORCH_DIST_USE_NCCL2=0 takes the older";

constexpr const char* kPortIsTaken =
    "another process has that port, the launcher if --master-port names it: env:// finds the store, and without "
    "--master-port a free port is chosen";

constexpr ByWords kByWords[] = {
    {"CUDA out of memory", "the GPU's memory is full: use a smaller batch"},
    {"CUDA error: out of memory", "the GPU's memory is full: use a smaller batch"},
    {"torch.OutOfMemoryError", "the GPU's memory is full: use a smaller batch"},
    {"device-side assert triggered",
     "a kernel was given a wrong value, often an index out of range: CUDA_LAUNCH_BLOCKING=1 shows the line"},
    {"an illegal memory access was encountered", "CUDA_LAUNCH_BLOCKING=1 shows which call it was"},
    {"Multiple Ranks are using the same GPU", kTwoOnOne},
    {"Duplicate GPU detected", kTwoOnOne},
    {"uncorrectable ECC error", kLostGpu},
    {"GPU is lost", kLostGpu},
    {"has fallen off the bus", kLostGpu},
    {"unspecified launch failure",
     "a kernel failed: CUDA_LAUNCH_BLOCKING=1 shows which, dmesg has an Xid if it was the GPU"},
    {"Mismatched NCCL version", "nodes have different versions of NCCL: use the same torch on all of them"},
    {"ncclSystemError", "NCCL could not use the network or shared memory: --env NCCL_DEBUG=INFO says why"},
    {"nccl hit async error", kNccl2},
    {"c10d/nccl2/", kNccl2},
    {"invalid device ordinal",
     "a node has fewer GPUs than ranks: start fewer ranks, or share GPUs with --oversubscribe"},
    {"no GPUs found", "there is no GPU here: use the gloo backend"},
    {"ddress already in use", kPortIsTaken},
    {"EADDRINUSE", kPortIsTaken},
    {"Gloo connectFullMesh failed",
     "ranks could not connect to each other: --interface makes them use the network that you name"},
    {"attempted relative import with no known parent package",
     "a file of a package is run as a module, from the folder that has the package: -m package.module"},
    {"ModuleNotFoundError", "the module is not installed for the Python that ran: --dry-run shows which one it is"},
    {"No module named ", "the module is not installed for the Python that ran: --dry-run shows which one it is"},
    {"No space left on device", "a disk is full: df -h shows which"},
    {"DataLoader worker", "data loader workers often die for want of memory or of /dev/shm: use fewer of them"},
    {"Expected to have finished reduction in the prior iteration",
     "some parameters got no gradient: pass find_unused_parameters=True to DistributedDataParallel"},
    {"Default process group has not been initialized", "call init_process_group() before the first collective"},
    // A thread that wants Python's lock while Python ends is unwound, which C++ code without exceptions answers so.
    {"terminate called without an active exception",
     "often a thread of torch's gloo that outlived Python's end: end the program with os._exit(0) after its last line"},
};

std::string_view by_words(std::span<const ByWords> table, std::string_view text) {
  auto known = std::ranges::find_if(table, [&](const ByWords& entry) { return text.find(entry.words) != text.npos; });
  return known == table.end() ? std::string_view() : known->hint;
}

/// What Python says of -m; it puts no quotes around the name, unlike around that of an import.
bool misses_program(std::string_view text) {
  constexpr std::string_view kMissing = ": No module named ";
  if (text.find("Error while finding module specification for") != text.npos) return true;
  auto found = text.find(kMissing);
  return found != text.npos && !text.substr(found + kMissing.size()).starts_with('\'');
}

/// torch asks NVML who else uses a GPU whose memory is full: "Process 1234 has 60.00 GiB memory in use".
std::string others_on_gpu(std::string_view text) {
  static const std::regex kOther("Process ([0-9]+) has ([0-9.]+ [KMGT]?i?B) memory in use");
  std::string others;
  for (std::cregex_iterator found(text.begin(), text.end(), kOther), end; found != end; ++found) {
    others += others.empty() ? "; beside this rank " : ", ";
    others += "process " + found->str(1) + " holds " + found->str(2);
  }
  return others;
}

std::string_view by_signal(int signal) {
  switch (signal) {
    case SIGKILL:
      return "taas-run did not send it: a memory limit of the container or batch system may have (see dmesg)";
    case SIGBUS:
      return "often a full /dev/shm: df -h /dev/shm";
    case SIGILL:
      return "the program, or a library of it, was built for another processor";
    case SIGUSR1:
    case SIGUSR2:
      return "taas-run passes this signal on to the ranks: the program has to handle it";
    default:
      return "";
  }
}

std::string_view by_cause(Cause cause, const ExitStatus& status) {
  switch (cause) {
    case Cause::kOutOfMemory:
      return "raise the memory limit, or use less: fewer data loader workers, smaller batches";
    case Cause::kStoreTimeout:
      return "see the logs of the ranks that were waited for, or raise the timeout of init_process_group()";
    case Cause::kSignal:
      return by_signal(status.signal);
    default:
      return "";
  }
}

}  // namespace

std::string find_hint(Cause cause, const ExitStatus& status, std::string_view text, Gpus gpus,
                      std::string_view gpu_holders) {
  if (cause == Cause::kOutOfMemory || cause == Cause::kStoreTimeout) return std::string(by_cause(cause, status));
  std::string_view hint;
  if (gpus == Gpus::kShared) hint = by_words(kBySharing, text);
  if (hint.empty() && misses_program(text)) hint = kNoSuchModule;
  if (hint.empty()) hint = by_words(kByWords, text);
  if (hint.empty()) return std::string(by_cause(cause, status));
  if (!gpu_holders.empty()) return std::string(hint) + "; " + std::string(gpu_holders);
  return std::string(hint) + others_on_gpu(text);
}

}  // namespace taas::run
