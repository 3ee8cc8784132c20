#include "data/transport/openssl_call.hpp"

#include <pthread.h>

namespace taas::data {

namespace {

// Readers are calls of OpenSSL; who forks is the writer, before whom no new reader is let in.
pthread_rwlock_t fork_lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

void before_fork() { ::pthread_rwlock_wrlock(&fork_lock); }
void after_fork_in_parent() { ::pthread_rwlock_unlock(&fork_lock); }
/// An unlock alone would hand it to threads that wait for it in the parent, and that the child does not have.
void after_fork_in_child() {
  ::pthread_rwlock_unlock(&fork_lock);
  pthread_rwlockattr_t attributes{};
  ::pthread_rwlockattr_init(&attributes);
  ::pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  ::pthread_rwlock_init(&fork_lock, &attributes);
}

[[maybe_unused]] const int registered = ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);

}  // namespace

OpensslCall::OpensslCall() { ::pthread_rwlock_rdlock(&fork_lock); }
OpensslCall::~OpensslCall() { ::pthread_rwlock_unlock(&fork_lock); }

}  // namespace taas::data
