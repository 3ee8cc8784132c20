#include "digits.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <sstream>

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
      if (got <= 0) {
        throw InputError(fmt::format("{} is cut off or damaged: {} of {} bytes could be read; download it again", path_,
                                     begin, count));
      }
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

DigitSet read_idx(const fs::path& images, const fs::path& labels) {
  DigitSet set{read_images(images), read_labels(labels)};
  auto count = set.pixels.size() / kDigitPixels;
  if (count == set.labels.size()) return set;
  throw InputError(fmt::format("{} holds {} images but {} holds {} labels: they do not belong together",
                               images.string(), count, labels.string(), set.labels.size()));
}

std::optional<DigitSet> find_set(const fs::path& folder, const std::string& prefix) {
  auto images = find_file(folder, prefix + "-images-idx3-ubyte");
  auto labels = find_file(folder, prefix + "-labels-idx1-ubyte");
  if (!images && !labels) return std::nullopt;
  if (images && labels) return read_idx(*images, *labels);
  throw InputError(fmt::format("{} has the {} {} but not the {}: both files are needed", folder.string(), prefix,
                               images ? "images" : "labels", images ? "labels" : "images"));
}

struct Point {
  double x, y;
};

/// How a pen writes each digit, in a box of 100 by 100 with y downwards; strokes go from point to point, with
/// semicolons between them.
constexpr std::array<const char*, 10> kGlyphs{
    "50,4 20,20 12,50 20,80 50,96 80,80 88,50 80,20 50,4",
    "25,30 52,4; 52,4 50,50 50,96",
    "15,25 30,7 60,5 82,22 74,45 45,70 14,94; 14,94 87,93",
    "16,13 50,4 80,20 72,40 42,47; 42,47 78,57 84,78 55,96 14,87",
    "60,4 35,36 10,66; 10,66 92,64; 66,30 64,62 62,97",
    "82,6 25,8; 25,8 20,45; 20,45 55,40 83,62 70,90 40,97 13,87",
    "72,5 36,25 17,60 25,88 55,96 80,78 70,56 45,50 20,66",
    "12,8 86,7; 86,7 60,45 40,96",
    "50,47 24,33 26,13 50,4 74,13 76,33 50,47 20,65 19,86 50,96 81,86 80,65 50,47",
    "79,28 60,7 30,9 18,30 35,50 62,47 79,28; 79,28 75,60 60,96"};

/// The standard's generator with own uniform numbers: the library's distributions differ between implementations.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t index) {
    std::seed_seq words{seed & 0xffffffff, seed >> 32, index & 0xffffffff, index >> 32};
    engine_.seed(words);
  }
  double between(double low, double high) {
    return low + (high - low) * (static_cast<double>(engine_() >> 11) * 0x1p-53);
  }

 private:
  std::mt19937_64 engine_;
};

/// One person's hand on one day: where the points of the box land on the image, in pixels.
class Hand {
 public:
  explicit Hand(Random& random) {
    width_ = random.between(9, 17);
    height_ = random.between(15, 22);
    slant_ = random.between(-.3, .3);
    turn_ = random.between(-.3, .3);
    centre_ = {random.between(11.5, 16.5), random.between(12, 16)};
  }

  Point operator()(Point point) const {
    double x = (point.x / 100 - .5) * width_;
    double y = (point.y / 100 - .5) * height_;
    x -= slant_ * y;
    return {centre_.x + x * std::cos(turn_) - y * std::sin(turn_),
            centre_.y + x * std::sin(turn_) + y * std::cos(turn_)};
  }

 private:
  double width_, height_, slant_, turn_;
  Point centre_{};
};

double distance(Point point, Point begin, Point end) {
  Point along{end.x - begin.x, end.y - begin.y};
  Point from{point.x - begin.x, point.y - begin.y};
  double length = along.x * along.x + along.y * along.y;
  double t = length > 0 ? std::clamp((from.x * along.x + from.y * along.y) / length, 0.0, 1.0) : 0;
  return std::hypot(from.x - t * along.x, from.y - t * along.y);
}

using Ink = std::array<double, kDigitPixels>;  // 0 none … 1 full

void draw_line(Ink& ink, Point begin, Point end, double radius) {
  auto pixel = [](double position) { return std::clamp(static_cast<int>(std::floor(position)), 0, kDigitSide - 1); };
  double reach = radius + 1;
  for (int y = pixel(std::min(begin.y, end.y) - reach); y <= pixel(std::max(begin.y, end.y) + reach); ++y)
    for (int x = pixel(std::min(begin.x, end.x) - reach); x <= pixel(std::max(begin.x, end.x) + reach); ++x) {
      auto& here = ink[static_cast<std::size_t>(y * kDigitSide + x)];
      here = std::max(here, std::clamp(radius + .5 - distance({x + .5, y + .5}, begin, end), 0.0, 1.0));
    }
}

Ink draw_digit(std::size_t digit, Random& random) {
  const Hand hand(random);
  const double radius = random.between(.5, 1.7);
  Ink ink{};
  std::istringstream text(kGlyphs[digit]);
  std::optional<Point> pen;
  char comma = 0;
  for (Point point{}; text >> point.x >> comma >> point.y;) {
    const auto next = hand(point);
    if (pen) draw_line(ink, *pen, next, radius);
    pen = next;
    if (text.peek() != ';') continue;
    text.get();  // the pen is lifted
    pen.reset();
  }
  return ink;
}

}  // namespace

DigitSet DigitSet::slice(std::size_t begin, std::size_t end) const {
  auto at = [](const auto& values, std::size_t index) { return values.begin() + static_cast<std::ptrdiff_t>(index); };
  return {{at(pixels, begin * kDigitPixels), at(pixels, end * kDigitPixels)}, {at(labels, begin), at(labels, end)}};
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

DigitSet generate_digits(std::uint64_t seed, std::size_t count) {
  DigitSet set;
  set.pixels.reserve(count * kDigitPixels);
  for (std::size_t index = 0; index < count; ++index) {
    Random random(seed, index);
    auto digit = index % 10;
    double darkness = random.between(150, 255);
    double noise = random.between(0, 50);
    for (double ink : draw_digit(digit, random))
      set.pixels.push_back(
          static_cast<std::uint8_t>(std::clamp(darkness * ink + random.between(-noise, noise), 0.0, 255.0)));
    set.labels.push_back(static_cast<std::uint8_t>(digit));
  }
  return set;
}

}  // namespace taas::train
