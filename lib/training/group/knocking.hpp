#pragma once

#include <cstdint>
#include <string>

#include "base/fd.hpp"

namespace taas {

/// A socket of this process that listens and never accepts, and where it is.
struct DoorBell {
  Fd listener;
  std::string address;  ///< numeric; empty: there is none
  std::uint16_t port = 0;
};

/// At the address by which this machine reaches `host`; loopback stays loopback.
DoorBell open_door_bell(const std::string& host, std::uint16_t port);

enum class Answer {
  kThere,
  kRefused,  ///< the process is gone, and its machine says so
  kNone,     ///< nothing came in time
};
Answer knock(const std::string& address, std::uint16_t port);

}  // namespace taas
