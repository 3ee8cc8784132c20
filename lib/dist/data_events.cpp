#include "dist/data_events.hpp"

#include <sys/socket.h>
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

bool send_event(const json::object& event) {
  const char* path = std::getenv("TAAS_EVENTS");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path == nullptr || std::string_view(path).size() >= sizeof(address.sun_path)) return false;
  std::string_view(path).copy(address.sun_path, sizeof(address.sun_path) - 1);
  static const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  auto text = json::serialize(event);
  return ::sendto(socket.get(), text.data(), text.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
                  sizeof(address)) >= 0;
}

}  // namespace

void report_data(const DataProgress& progress) {
  send_event({{"kind", "data"},
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
              {"done", progress.done}});
}

void remark_on_data(const std::string& text) {
  if (!send_event({{"kind", "remark"}, {"text", valid_utf8(text)}})) std::cerr << "taas: " << text << std::endl;
}

}  // namespace taas
