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

}  // namespace taas
