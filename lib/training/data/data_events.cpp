#include "training/data/data_events.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <iostream>

#include "base/fd.hpp"
#include "base/utf8.hpp"

namespace taas {
namespace {

namespace json = boost::json;

/// For a launcher that is busy: its socket takes ten datagrams, from all ranks together.
constexpr timeval kPatience{0, 200'000};

Fd make_socket() {
  Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  return socket;
}

/// What tells an end may wait a moment for the launcher.
bool send_event(const json::object& event, bool wait = false) {
  const char* path = std::getenv("TAAS_EVENTS");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path == nullptr || std::string_view(path).size() >= sizeof(address.sun_path)) return false;
  std::string_view(path).copy(address.sun_path, sizeof(address.sun_path) - 1);
  static const Fd socket = make_socket();
  auto text = json::serialize(event);
  return ::sendto(socket.get(), text.data(), text.size(), MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT),
                  reinterpret_cast<const sockaddr*>(&address), sizeof(address)) >= 0;
}

}  // namespace

void report_data(const DataProgress& progress) {
  json::object event{{"kind", "data"},
                     {"rank", progress.rank},
                     {"loader", valid_utf8(progress.loader)},
                     {"samples", progress.samples},
                     {"batches", progress.batches},
                     {"bytes", progress.bytes},
                     {"seconds", progress.seconds},
                     {"waited", progress.waited},
                     {"buffered", progress.buffered},
                     {"workers", progress.workers},
                     {"hedged", progress.hedged},
                     {"done", progress.done}};
  send_event(event, progress.done);
}

bool report_prepared(const DataPrepared& prepared) {
  json::object event{{"kind", "prepared"},
                     {"worker", prepared.worker},
                     {"batches", prepared.batches},
                     {"bytes", prepared.bytes},
                     {"done", prepared.done}};
  return send_event(event, prepared.done);
}

void remark_on_data(const std::string& text) {
  if (!send_event({{"kind", "remark"}, {"text", valid_utf8(text)}})) std::cerr << "taas: " << text << std::endl;
}

}  // namespace taas
