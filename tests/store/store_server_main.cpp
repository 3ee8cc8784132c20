// Serves a store until its standard input ends: prints the port, then "joined <rank>" and "refused <why>" as they come.
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdio>

#include "store/server.hpp"

int main() {
  boost::asio::io_context io;
  taas::store::Observer observer{
      .on_joined = [](taas::Rank rank) { std::printf("joined %d\n", rank.value), std::fflush(stdout); },
      .on_refused =
          [](const taas::Error& why) { std::printf("refused %s\n", why.message.c_str()), std::fflush(stdout); },
  };
  auto server = taas::store::Server::listen(io, {}, std::move(observer));
  if (!server) {
    std::fprintf(stderr, "%s\n", server.error().message.c_str());
    return 1;
  }
  std::printf("%d\n", (*server)->port());
  std::fflush(stdout);
  boost::asio::posix::stream_descriptor input(io, ::dup(STDIN_FILENO));
  input.async_wait(boost::asio::posix::stream_descriptor::wait_read, [&](const auto&) { io.stop(); });
  io.run();
}
