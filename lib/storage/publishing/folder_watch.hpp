#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/folders/held_folder.hpp"

namespace taas::storage {

/// A file that may have got new content.
struct FoundFile {
  enum class How {
    kThere,   ///< only found, perhaps unfinished
    kClosed,  ///< closed after writing
    kPlaced,  ///< renamed into place
  };
  std::string name;  ///< relative to the watched folder
  How how = How::kThere;
};

/// Tells in the event loop which files below a folder may have got new content: those that were closed after writing,
/// renamed or linked into place, or found in a folder that is new. They come in batches and in the order in which it
/// happened; one may come twice, and may be gone when it is told. Folders made later are watched too, as far as the
/// system's limit of watches goes. The kernel tells of what processes of this machine do, and of no other's.
class FolderWatch {
 public:
  struct Callbacks {
    std::function<void(const std::vector<FoundFile>& files)> on_files;
    std::function<void()> on_mark = {};      ///< see mark()
    std::function<void()> on_replaced = {};  ///< something else has got the folder's name
  };

  /// Of the folder `name` in `above`. What is in it already is told at once, before this returns.
  static Result<std::unique_ptr<FolderWatch>> start(boost::asio::io_context& io, const HeldFolder& above,
                                                    const std::string& name, Callbacks callbacks);
  ~FolderWatch();

  /// From any thread: on_mark comes after all that has happened by now, and before all that happens later.
  void mark();
  /// Tells of all that has happened by now before it returns.
  void drain();

 private:
  struct State;
  explicit FolderWatch(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace taas::storage
