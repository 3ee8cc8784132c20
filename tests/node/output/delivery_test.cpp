#include "node/output/delivery.hpp"

#include <deque>

#include "catch.hpp"
#include "run/messages/file_frames.hpp"
#include "storage/temporary_folder.hpp"

namespace delivery_test {

using namespace taas;
using namespace taas::node;
namespace fs = std::filesystem;

namespace {

/// The other end is played by hand.
struct Sender {
  storage::TemporaryFolder folder;
  boost::asio::io_context io;
  std::deque<std::string> sent;
  Delivery delivery{
      io, {folder.path(), [this](std::string frame) { sent.push_back(std::move(frame)); }, [](const auto&) {}}};

  void add(const std::string& name, std::size_t bytes) {
    storage::write_text(folder / name, std::string(bytes, 'x'));
    delivery.add(name, bytes);
  }
  template <class Frame>
  Frame next() {
    for (int turns = 0; sent.empty() && turns < 20'000; ++turns) {
      io.restart();
      io.run_one_for(std::chrono::milliseconds(1));
    }
    REQUIRE_FALSE(sent.empty());
    held = std::move(sent.front());
    sent.pop_front();
    return std::get<Frame>(run::decode_file_frame(held).value());
  }
  std::string held;  // that a piece points into
};

}  // namespace

TEST_CASE("a delivery knows how much has arrived of how much") {
  Sender sender;
  sender.add("a", 100'000);
  sender.add("b", 20'000);
  auto progress = sender.delivery.progress();
  CHECK(progress.files == 2);
  CHECK(progress.bytes == 120'000);
  CHECK(progress.bytes_done == 0);
  const auto first = sender.next<run::FileOffer>().transfer;
  sender.delivery.hear(run::FileProgress{first, 0});
  CHECK(sender.next<run::FilePiece>().bytes.size() == run::kFilePieceBytes);
  sender.delivery.hear(run::FileProgress{first, run::kFilePieceBytes});
  progress = sender.delivery.progress();
  CHECK(progress.files_done == 0);
  CHECK(progress.bytes == 120'000);
  CHECK(progress.bytes_done == run::kFilePieceBytes);
  sender.delivery.hear(run::FileStored{first, ""});
  progress = sender.delivery.progress();
  CHECK(progress.files == 2);
  CHECK(progress.files_done == 1);
  CHECK(progress.bytes_done == 100'000);
  sender.delivery.count_from_now();
  CHECK(sender.delivery.progress().files == 1);
  CHECK(sender.delivery.progress().bytes == 20'000);
}

TEST_CASE("a file that failed does not count until it is tried again") {
  Sender sender;
  sender.add("a", 100);
  sender.delivery.hear(run::FileStored{sender.next<run::FileOffer>().transfer, "no space"});
  CHECK(sender.delivery.progress().files == 0);
  sender.delivery.settle([](const std::string&) {});
  CHECK(sender.delivery.progress().files == 1);
  CHECK(sender.delivery.progress().bytes == 100);
}

}  // namespace delivery_test
