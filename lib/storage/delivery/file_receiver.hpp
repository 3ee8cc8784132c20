#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/folders/held_folder.hpp"
#include "storage/delivery/incoming_file.hpp"
#include "storage/delivery/placing.hpp"

namespace taas::storage {

struct FileReceiverOptions {
  HeldPath files;  ///< the folder where the run's files are found at last
  /// So much of the file is on its way to the disk; 0: it may come now.
  std::function<void(int source, std::uint64_t transfer, std::uint64_t received)> on_progress;
  /// The file is on disk under its name, or `error` says why not.
  std::function<void(int source, std::uint64_t transfer, const std::string& error)> on_stored;
};

/// Takes files from other machines, one at a time from each and few at once, and puts them on disk by a thread of its
/// own: the event loop waits for no disk, and holds no more of a file than kMostUnwritten. What is not whole when its
/// source is gone was never there. To be destroyed before the loop; that waits for the write under way.
class FileReceiver {
 public:
  static constexpr std::uint64_t kMostUnwritten = 1u << 20;  ///< that a source may have sent beyond what it was told

  FileReceiver(boost::asio::io_context& io, FileReceiverOptions options);
  ~FileReceiver();

  // False: the source does not keep to the rules, and should not be heard any more.

  /// `folder` is where the file comes to be; made where it is missing.
  bool offer(int source, std::uint64_t transfer, const HeldPath& folder, FileHead head);
  bool add(int source, std::uint64_t transfer, std::string bytes);
  /// Nothing more comes of it.
  void cancel(int source, std::uint64_t transfer);
  /// The source is gone. Returns the file of which only a part has come.
  std::optional<std::string> forget(int source);

  /// Once all that came before is on disk.
  void place(std::vector<Delivered> delivered, std::function<void(Placed)> on_done);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace taas::storage
