#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace taas::storage {

/// A file that may have got new content.
struct FoundFile {
  std::string name;     ///< relative to the watched folder
  bool closed = false;  ///< closed after writing, or renamed into place; false: only found there, perhaps unfinished
};

/// Tells in the event loop which files below a folder may have got new content: those that were closed after writing,
/// renamed or linked into place, or found in a folder that is new. They come in batches; one may come twice, and may be
/// gone when it is told. Folders made later are watched too, as far as the system's limit of watches goes.
class FolderWatch {
 public:
  using Callback = std::function<void(const std::vector<FoundFile>& files)>;

  /// What is in the folder already is told at once, before this returns.
  static Result<std::unique_ptr<FolderWatch>> start(boost::asio::io_context& io, std::string folder, Callback on_files);
  ~FolderWatch();

 private:
  struct State;
  explicit FolderWatch(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace taas::storage
