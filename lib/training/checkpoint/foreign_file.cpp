#include "training/checkpoint/foreign_file.hpp"

#include <string_view>

#include "base/files.hpp"

namespace taas {
namespace {

using std::string_view_literals::operator""sv;

constexpr auto kZip = "PK\x03\x04"sv;
/// torch's old format: a pickle of the number 0x1950a86a20f9469cfc6c.
constexpr auto kLegacy = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv;
constexpr std::size_t kHead = 16;

}  // namespace

std::string explain_unreadable(const std::string& path) {
  const auto head = read_regular_file(path, kHead);
  if (!head) return ": " + head.error().message;
  if (head->find(kLegacy) != head->npos)
    return " is in torch's old format: load it in Python, and save it again without "
           "_use_new_zipfile_serialization=False";
  if (head->starts_with(kZip)) return " is cut off or damaged: give another file, or remove it";
  return " is not a file of torch.save or taas::save_checkpoint";
}

}  // namespace taas
