#include "storage/publishing/folder_watch.hpp"

#include <sys/inotify.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unordered_map>

namespace taas::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kEvents =
    IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK;

std::string join(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

}  // namespace

struct FolderWatch::State : std::enable_shared_from_this<State> {
  State(boost::asio::io_context& io, std::string root, Callback callback, int inotify)
      : folder(std::move(root)), on_files(std::move(callback)), descriptor(io, inotify) {}

  /// Watches a folder and the folders in it. The watch comes before the look inside, so nothing falls between them.
  /// Watching again what was renamed corrects the name by which it is known.
  bool watch(const std::string& name, std::vector<FoundFile>& found) {
    auto path = join(folder, name);
    int id = ::inotify_add_watch(descriptor.native_handle(), path.c_str(), kEvents);
    if (id < 0) return errno == ENOENT || errno == ENOTDIR;  // gone again already
    names[id] = name;
    std::error_code failure;
    for (fs::directory_iterator entry(path, failure), end; !failure && entry != end; entry.increment(failure)) {
      auto inner = join(name, entry->path().filename().string());
      std::error_code unknown;
      if (entry->is_symlink(unknown) || !entry->is_directory(unknown)) {
        found.push_back({inner});
      } else if (!watch(inner, found)) {
        return false;
      }
    }
    return true;
  }

  void read() {
    descriptor.async_read_some(boost::asio::buffer(buffer), [weak = weak_from_this()](auto error, std::size_t count) {
      auto self = weak.lock();
      if (error || !self) return;
      self->handle(count);
      self->read();
    });
  }

  void handle(std::size_t count) {
    std::vector<FoundFile> found;
    for (std::size_t done = 0; done < count;) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + done, sizeof event);
      handle(event, buffer.data() + done + sizeof event, found);
      done += sizeof event + event.len;
    }
    if (!found.empty()) on_files(found);
  }

  void handle(const inotify_event& event, const char* leaf, std::vector<FoundFile>& found) {
    if ((event.mask & IN_Q_OVERFLOW) != 0) {  // events were lost: look everywhere
      watch("", found);
      return;
    }
    auto known = names.find(event.wd);
    if (known == names.end()) return;
    if ((event.mask & IN_IGNORED) != 0) {
      names.erase(known);
      return;
    }
    if (event.len == 0) return;
    auto name = join(known->second, leaf);
    if ((event.mask & IN_ISDIR) != 0) {
      watch(name, found);
    } else {
      found.push_back({std::move(name), (event.mask & IN_CREATE) == 0});  // IN_CREATE: just begun, or a link
    }
  }

  std::string folder;
  Callback on_files;
  boost::asio::posix::stream_descriptor descriptor;
  std::unordered_map<int, std::string> names;  // of watched folders, by watch
  std::array<char, 64 * 1024> buffer;
};

Result<std::unique_ptr<FolderWatch>> FolderWatch::start(boost::asio::io_context& io, std::string folder,
                                                        Callback on_files) {
  int inotify = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (inotify < 0) return system_error("cannot watch " + folder, errno);
  auto state = std::make_shared<State>(io, std::move(folder), std::move(on_files), inotify);
  std::vector<FoundFile> found;
  if (!state->watch("", found)) return system_error("cannot watch " + state->folder, errno);
  state->read();
  if (!found.empty()) state->on_files(found);
  return std::unique_ptr<FolderWatch>(new FolderWatch(std::move(state)));
}

FolderWatch::FolderWatch(std::shared_ptr<State> state) : state_(std::move(state)) {}

FolderWatch::~FolderWatch() {
  state_->on_files = [](const std::vector<FoundFile>&) {};
  boost::system::error_code ignored;
  state_->descriptor.close(ignored);
}

}  // namespace taas::storage
