#include "run/hint.hpp"

#include <algorithm>
#include <array>
#include <csignal>

namespace taas::run {
namespace {

struct ByWords {
  std::string_view words;
  std::string_view hint;
};

constexpr ByWords kByWords[] = {
    {"CUDA out of memory", "the GPU's memory is full: use a smaller batch, or see nvidia-smi for who else uses it"},
    {"torch.OutOfMemoryError", "the GPU's memory is full: use a smaller batch, or see nvidia-smi for who else uses it"},
    {"invalid device ordinal",
     "a node has fewer GPUs than ranks: start fewer ranks, or share GPUs with --oversubscribe"},
    {"no GPUs found", "there is no GPU here: use the gloo backend"},
    {"ddress already in use", "another process has that port: without --master-port a free one is chosen"},
    {"EADDRINUSE", "another process has that port: without --master-port a free one is chosen"},
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

std::string find_hint(Cause cause, const ExitStatus& status, std::string_view text) {
  auto known = std::find_if(std::begin(kByWords), std::end(kByWords),
                            [&](const ByWords& entry) { return text.find(entry.words) != text.npos; });
  bool words_count = cause != Cause::kOutOfMemory && cause != Cause::kStoreTimeout && known != std::end(kByWords);
  return std::string(words_count ? known->hint : by_cause(cause, status));
}

}  // namespace taas::run
