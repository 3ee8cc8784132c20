#include "storage/publishing/folder_watch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstring>
#include <unordered_map>

#include "base/folders/beneath.hpp"

namespace taas::storage {
namespace {

constexpr std::uint32_t kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ONLYDIR | IN_EXCL_UNLINK;
constexpr std::uint32_t kNewNames = IN_MOVED_TO | IN_CREATE | IN_ONLYDIR;

std::string join(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

/// The kernel resolves only paths here: this one leads to what is open, whatever its name is by now.
int watch_open(int inotify, const Fd& opened, std::uint32_t events) {
  return ::inotify_add_watch(inotify, fmt::format("/proc/self/fd/{}", opened.get()).c_str(), events);
}

/// A file without a name, on a file system that tells of writes to it.
Fd make_mark_file() {
  for (const auto* folder : {"/dev/shm", "/tmp", "."}) {
    Fd made(::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (made) return made;
  }
  return {};
}

}  // namespace

struct FolderWatch::State : std::enable_shared_from_this<State> {
  State(boost::asio::io_context& io, Callbacks told, int inotify)
      : callbacks(std::move(told)), descriptor(io, inotify), mark_file(make_mark_file()) {
    if (mark_file) mark_watch = watch_open(inotify, mark_file, IN_MODIFY);
  }

  Result<> open(const HeldFolder& above, const std::string& name) {
    own_name = name;
    above_watch = watch_open(descriptor.native_handle(), above.descriptor(), kNewNames);
    auto opened = above.folder(name);
    if (!opened) return opened.error();
    folder = std::move(*opened);
    if (!watch("")) return system_error("cannot watch " + folder.path(), errno);
    return {};
  }

  /// Watches a folder and the folders in it. The watch comes before the look inside, so nothing falls between them.
  /// Watching again what was renamed corrects the name by which it is known.
  bool watch(const std::string& name) {
    auto opened = name.empty() ? Result<HeldFolder>(folder) : folder.folder(name);
    if (!opened) return true;  // gone again, or no folder of this file system
    int id = watch_open(descriptor.native_handle(), opened->descriptor(), kEvents);
    if (id < 0) return errno == ENOENT || errno == ENOTDIR;
    names[id] = name;
    auto entries = opened->entries();
    if (!entries) return true;
    for (const auto& [leaf, is_folder] : *entries) {
      auto inner = join(name, leaf);
      if (!is_folder) {
        found.push_back({std::move(inner)});
      } else if (!watch(inner)) {
        return false;
      }
    }
    return true;
  }

  void read() {
    descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read, [weak = weak_from_this()](auto error) {
      auto self = weak.lock();
      if (error || !self) return;
      self->drain();
      self->read();
    });
  }

  void drain() {
    for (;;) {
      auto count = ::read(descriptor.native_handle(), buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      handle(static_cast<std::size_t>(count));
    }
    tell();
  }

  void handle(std::size_t count) {
    for (std::size_t done = 0; done < count;) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + done, sizeof event);
      handle(event, buffer.data() + done + sizeof event);
      done += sizeof event + event.len;
    }
  }

  void handle(const inotify_event& event, const char* leaf) {
    if ((event.mask & IN_Q_OVERFLOW) != 0) {  // events were lost, perhaps a mark: look everywhere
      watch("");
      return tell_mark();
    }
    if (event.wd == mark_watch) return tell_mark();
    if (event.wd == above_watch) {
      replaced = replaced || (event.len > 0 && leaf == own_name);
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
      watch(name);
      return;
    }
    using How = FoundFile::How;
    const auto how = (event.mask & IN_MOVED_TO) != 0      ? How::kPlaced
                     : (event.mask & IN_CLOSE_WRITE) != 0 ? How::kClosed
                                                          : How::kThere;  // just begun, or a link
    found.push_back({std::move(name), how});
  }

  void tell() {
    auto all = std::exchange(found, {});
    if (!all.empty() && callbacks.on_files) callbacks.on_files(all);
    if (std::exchange(replaced, false) && callbacks.on_replaced) callbacks.on_replaced();
  }

  void tell_mark() {
    tell();
    if (callbacks.on_mark) callbacks.on_mark();
  }

  HeldFolder folder;
  Callbacks callbacks;
  boost::asio::posix::stream_descriptor descriptor;
  Fd mark_file;
  int mark_watch = -1;
  int above_watch = -1;
  std::string own_name;
  std::unordered_map<int, std::string> names;  // of watched folders, by watch
  std::vector<FoundFile> found;                // and not told yet
  bool replaced = false;
  std::array<char, 64 * 1024> buffer;
};

Result<std::unique_ptr<FolderWatch>> FolderWatch::start(boost::asio::io_context& io, const HeldFolder& above,
                                                        const std::string& name, Callbacks callbacks) {
  int inotify = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (inotify < 0) return system_error("cannot watch " + above.path_of(name), errno);
  auto state = std::make_shared<State>(io, std::move(callbacks), inotify);
  if (auto opened = state->open(above, name); !opened) return opened.error();
  state->read();
  state->tell();
  return std::unique_ptr<FolderWatch>(new FolderWatch(std::move(state)));
}

FolderWatch::FolderWatch(std::shared_ptr<State> state) : state_(std::move(state)) {}

FolderWatch::~FolderWatch() {
  state_->callbacks = {};
  boost::system::error_code ignored;
  state_->descriptor.close(ignored);
}

void FolderWatch::mark() {
  const char byte = 0;
  const bool written = state_->mark_file && ::pwrite(state_->mark_file.get(), &byte, 1, 0) == 1;
  static_cast<void>(written);  // where it is not, the next look at the folder takes its place
}

void FolderWatch::drain() { state_->drain(); }

}  // namespace taas::storage
