// Preloaded into taas-run: a staged file is on disk only once the folder $TAAS_FLUSHES has one more entry than there
// were flushes of such files before.
#include <dirent.h>
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

bool is_staged(int descriptor) {
  std::array<char, 4096> path{};
  const auto link = "/proc/self/fd/" + std::to_string(descriptor);
  return ::readlink(link.c_str(), path.data(), path.size() - 1) > 0 &&
         std::strstr(path.data(), "/.staging/") != nullptr;
}

int entries(const char* folder) {
  DIR* opened = ::opendir(folder);
  int count = -2;  // "." and ".."
  while (opened != nullptr && ::readdir(opened) != nullptr) ++count;
  if (opened != nullptr) ::closedir(opened);
  return count;
}

}  // namespace

extern "C" int fsync(int descriptor) {
  static int flushed = 0;  // by one thread
  static const auto real = reinterpret_cast<int (*)(int)>(::dlsym(RTLD_NEXT, "fsync"));
  const char* folder = std::getenv("TAAS_FLUSHES");
  if (folder != nullptr && is_staged(descriptor)) {
    while (entries(folder) <= flushed) ::usleep(10'000);
    ++flushed;
  }
  return real(descriptor);
}
