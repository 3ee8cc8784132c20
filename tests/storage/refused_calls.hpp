#pragma once

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <thread>

namespace taas::storage {

/// What the kernel shall answer from now on when this thread, or one that it starts, makes this call, perhaps only with
/// this second argument.
inline void answer_calls(long number, std::optional<unsigned> second, unsigned answer) {
  auto by_argument = static_cast<unsigned char>(second ? 0 : 2);  // how many steps to leave out
  std::array<sock_filter, 6> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), by_argument, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args) + sizeof(std::uint64_t)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second.value_or(0), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, answer),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  bool installed =
      ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
  if (!installed) throw std::runtime_error("this system has no seccomp filters");
}

/// Does work in a thread of its own for which every file system refuses leases with EAGAIN, as NFS does without a
/// delegation.
template <class Work>
void without_leases(Work work) {
  std::exception_ptr thrown;
  std::thread thread([&] {
    try {
      answer_calls(SYS_fcntl, F_SETLEASE, SECCOMP_RET_ERRNO | EAGAIN);
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
  });
  thread.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace taas::storage
