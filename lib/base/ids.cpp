#include "base/ids.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <ctime>
#include <fstream>

namespace taas {

std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
}

std::string random_hex(int bytes) {
  std::array<unsigned char, 64> noise{};
  auto wanted = static_cast<std::size_t>(bytes) < noise.size() ? static_cast<std::size_t>(bytes) : noise.size();
  [[maybe_unused]] auto got = ::getrandom(noise.data(), wanted, 0);  // never short for 256 bytes or less
  std::string text;
  for (std::size_t i = 0; i < wanted; ++i) text += fmt::format("{:02x}", noise[i]);
  return text;
}

std::string make_run_id() {
  std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  return fmt::format("{:%Y%m%d-%H%M%S}-{}", local, random_hex(3));
}

}  // namespace taas
