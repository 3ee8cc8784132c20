// The definitions of streams, and the memory that goes along with them.
#include <sys/stat.h>

#include <cstring>

#include "base/memory.hpp"
#include "data/memory/memory.hpp"
#include "worker.hpp"

namespace delivery_definitions_test {

using namespace taas;
using namespace taas::data;

TEST_CASE("the definition is there when a job is") {
  const auto way = GENERATE(from_range(kWays));
  std::atomic<int> there = 0;
  const std::string text(3'000'001, 'd');
  Worker worker(way, kKey, [&](Server& server, const Job& job) {
    const auto found = server.definition(job.digest);
    if (found && found->bytes == text && !found->memory.descriptor) ++there;
    Worker::answer(server, job);
  });
  Client one(options_for(way));
  Client two(options_for(way));
  for (auto* client : {&one, &two}) {
    client->set_workers({worker.address()});
    const auto stream = client->open(definition(text));
    client->submit(stream, task(1, 10));
    expect_batch(*client, stream, task(1, 10));
  }
  CHECK(there == 2);
}

TEST_CASE("memory of a definition goes along: the same on this machine, a copy elsewhere") {
  const auto way = GENERATE(from_range(kWays));
  const std::string text(3'000'001, 'm');
  auto memory = SealedMemory::copy_of(std::as_bytes(std::span(text)));
  REQUIRE(memory.has_value());
  const auto inode_of = [](const SealedMemory& of) {
    struct stat status = {};
    return ::fstat(of.descriptor.get(), &status) == 0 ? status.st_ino : 0;
  };
  const auto inode = inode_of(*memory);
  std::atomic<int> same = 0;
  std::atomic<int> whole = 0;
  Worker worker(way, kKey, [&](Server& server, const Job& job) {
    const auto found = server.definition(job.digest);
    const auto mapping = Mapping::to_read(found->memory.descriptor, found->memory.bytes);
    const bool is_whole = mapping && found->bytes == "a dataset" && mapping->bytes().size() == text.size() &&
                          std::memcmp(mapping->bytes().data(), text.data(), text.size()) == 0;
    if (is_whole) ++whole;
    if (inode_of(found->memory) == inode) ++same;
    Worker::answer(server, job);
  });
  Client client(options_for(way));
  client.set_workers({worker.address()});
  auto meant = definition();
  meant.memory = std::make_shared<const SealedMemory>(std::move(*memory));
  const auto stream = client.open(meant);
  client.submit(stream, task(1, 10));
  expect_batch(client, stream, task(1, 10));
  CHECK(whole == 1);
  CHECK(same == (worker.address().unix_path.empty() ? 0 : 1));
}

TEST_CASE("a definition that is loaded is let go, and asked for again once it is not loaded any more") {
  const auto way = GENERATE(kWays[0], kWays[1], kWays[2]);
  std::atomic<int> came = 0;
  std::atomic<int> let_go = 0;
  std::atomic<bool> keep = true;
  Worker worker(way, kKey, [&](Server& server, const Job& job) {
    if (auto found = server.definition(job.digest)) {
      ++came;
      const std::weak_ptr held = found;
      server.loaded(job.digest);
      found.reset();
      if (held.expired()) ++let_go;
    }
    if (!keep) server.unloaded(job.digest);
    Worker::answer(server, job);
  });
  Client client(options_for(way));
  client.set_workers({worker.address()});
  const auto stream = client.open(definition());
  for (std::size_t i = 0; i < 20; ++i) {
    keep = i < 10;
    client.submit(stream, task(i, 10));
    expect_batch(client, stream, task(i, 10));
    CHECK(came == (i <= 10 ? 1 : static_cast<int>(i) - 9));
    CHECK(let_go == came);
  }
}

}  // namespace delivery_definitions_test
