#include "digits.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "input_error.hpp"

namespace taas::train {
namespace fs = std::filesystem;
namespace {

constexpr std::uint32_t kImagesMagic = 0x00000803;  // unsigned bytes in three dimensions
constexpr std::uint32_t kLabelsMagic = 0x00000801;  // unsigned bytes in one dimension

/// An IDX file while it is read; zlib passes plain files through as they are.
class IdxFile {
 public:
  explicit IdxFile(const fs::path& path) : path_(path.string()), file_(gzopen(path_.c_str(), "rbe"), &gzclose) {
    if (!file_) throw InputError(fmt::format("cannot open {}: check that it exists and may be read", path_));
  }

  std::uint32_t read_number() {
    auto bytes = read_bytes(4);
    return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
  }

  void expect_magic(std::uint32_t wanted, const char* kind) {
    auto magic = read_number();
    if (magic == wanted) return;
    throw InputError(
        fmt::format("{} is not an IDX file of {}: it starts with {:#010x}, not {:#010x}", path_, kind, magic, wanted));
  }

  /// Grows with what is really there, so that a damaged header cannot ask for all memory.
  std::vector<std::uint8_t> read_bytes(std::size_t count) {
    std::vector<std::uint8_t> bytes;
    while (bytes.size() < count) {
      auto begin = bytes.size();
      bytes.resize(begin + std::min<std::size_t>(count - begin, 1 << 20));
      auto got = gzread(file_.get(), bytes.data() + begin, static_cast<unsigned>(bytes.size() - begin));
      if (got <= 0) fail_short(begin, count);
      bytes.resize(begin + static_cast<std::size_t>(got));
    }
    return bytes;
  }

  void expect_end() {
    std::uint8_t extra = 0;
    if (gzread(file_.get(), &extra, 1) == 0) return;
    throw InputError(fmt::format("{} is longer than its header says: download it again", path_));
  }

 private:
  [[noreturn]] void fail_short(std::size_t got, std::size_t wanted) const {
    throw InputError(
        fmt::format("{} is cut off or damaged: {} of {} bytes could be read; download it again", path_, got, wanted));
  }

  std::string path_;
  std::unique_ptr<gzFile_s, decltype(&gzclose)> file_;
};

std::vector<std::uint8_t> read_images(const fs::path& path) {
  IdxFile file(path);
  file.expect_magic(kImagesMagic, "images");
  std::size_t count = file.read_number();
  auto rows = file.read_number();
  auto columns = file.read_number();
  if (rows != kDigitSide || columns != kDigitSide)
    throw InputError(fmt::format("{} holds images of {}x{} pixels; 28x28 are needed", path.string(), rows, columns));
  auto pixels = file.read_bytes(count * kDigitPixels);
  file.expect_end();
  return pixels;
}

std::vector<std::uint8_t> read_labels(const fs::path& path) {
  IdxFile file(path);
  file.expect_magic(kLabelsMagic, "labels");
  auto labels = file.read_bytes(file.read_number());
  file.expect_end();
  auto wrong = std::find_if(labels.begin(), labels.end(), [](std::uint8_t label) { return label > 9; });
  if (wrong != labels.end())
    throw InputError(fmt::format("{} holds label {}; labels of digits are 0 to 9", path.string(), *wrong));
  return labels;
}

/// The file under its plain or its gzip name.
std::optional<fs::path> find_file(const fs::path& folder, const std::string& name) {
  std::error_code ignored;
  for (const auto& candidate : {folder / name, folder / (name + ".gz")})
    if (fs::exists(candidate, ignored)) return candidate;
  return std::nullopt;
}

std::optional<DigitSet> find_set(const fs::path& folder, const std::string& prefix) {
  auto images = find_file(folder, prefix + "-images-idx3-ubyte");
  auto labels = find_file(folder, prefix + "-labels-idx1-ubyte");
  if (!images && !labels) return std::nullopt;
  if (images && labels) return read_idx(*images, *labels);
  throw InputError(fmt::format("{} has the {} {} but not the {}: both files are needed", folder.string(), prefix,
                               images ? "images" : "labels", images ? "labels" : "images"));
}

}  // namespace

DigitSet DigitSet::slice(std::size_t begin, std::size_t end) const {
  auto at = [](const auto& values, std::size_t index) { return values.begin() + static_cast<std::ptrdiff_t>(index); };
  return {{at(pixels, begin * kDigitPixels), at(pixels, end * kDigitPixels)}, {at(labels, begin), at(labels, end)}};
}

DigitSet read_idx(const fs::path& images, const fs::path& labels) {
  DigitSet set{read_images(images), read_labels(labels)};
  auto count = set.pixels.size() / kDigitPixels;
  if (count == set.labels.size()) return set;
  throw InputError(fmt::format("{} holds {} images but {} holds {} labels: they do not belong together",
                               images.string(), count, labels.string(), set.labels.size()));
}

Digits read_digits(const fs::path& folder) {
  auto train = find_set(folder, "train");
  auto test = find_set(folder, "t10k");
  if (!test)
    throw InputError(fmt::format(
        "{} has no t10k-images-idx3-ubyte[.gz]: give a folder of IDX files with --data, or leave --data out "
        "to train on generated digits",
        folder.string()));
  if (train) return {std::move(*train), std::move(*test)};
  auto split = test->size() * 8 / 10;
  return {test->slice(0, split), test->slice(split, test->size())};
}

}  // namespace taas::train
