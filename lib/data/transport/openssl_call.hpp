#pragma once

namespace taas::data {

/// Is held by each thread of ours for as long as it is inside OpenSSL, never twice and never while it waits for a peer.
/// A fork waits until nobody is: the child would inherit OpenSSL's locks as they stand, and a process that forks
/// DataLoader workers beside our threads would make children that wait for ever for a lock in hashlib or ssl.
class OpensslCall {
 public:
  OpensslCall();
  ~OpensslCall();
  OpensslCall(const OpensslCall&) = delete;
  OpensslCall& operator=(const OpensslCall&) = delete;
};

}  // namespace taas::data
