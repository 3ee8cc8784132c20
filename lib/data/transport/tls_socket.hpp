#pragma once

#include <openssl/bio.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "base/fd.hpp"

namespace taas::data {

/// A socket as OpenSSL sees it, with room for many records on both sides: one system call for each of its 16 KiB is
/// half of what TLS costs.
class TlsSocket {
 public:
  explicit TlsSocket(Fd socket);
  TlsSocket(const TlsSocket&) = delete;
  TlsSocket& operator=(const TlsSocket&) = delete;

  /// For SSL_set_bio, which takes it over. Must not be used after this.
  BIO* make_bio();
  /// Sends what can be sent now. False: the connection failed.
  bool flush();
  [[nodiscard]] bool is_flushed() const { return out_begin_ == out_end_; }
  [[nodiscard]] const Fd& fd() const { return socket_; }

 private:
  static BIO_METHOD* method();
  static int read(BIO* bio, char* into, int size);
  static int write(BIO* bio, const char* bytes, int size);
  static long control(BIO* bio, int command, long number, void* pointer);

  Fd socket_;
  std::vector<char> in_;
  std::size_t in_begin_ = 0;
  std::size_t in_end_ = 0;
  std::vector<char> out_;
  std::size_t out_begin_ = 0;
  std::size_t out_end_ = 0;
};

}  // namespace taas::data
