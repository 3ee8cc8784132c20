#include "generator.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>

namespace taas::train {
namespace {

struct Point {
  double x, y;
};
using Stroke = std::vector<Point>;
using Glyph = std::vector<Stroke>;

/// How a pen writes each digit, in a box of 1 by 1 with y downwards; a stroke is a smooth curve through its points.
const std::array<Glyph, 10>& glyphs() {
  static const std::array<Glyph, 10> kGlyphs{{
      {{{.5, .04}, {.2, .2}, {.12, .5}, {.2, .8}, {.5, .96}, {.8, .8}, {.88, .5}, {.8, .2}, {.5, .04}}},
      {{{.25, .3}, {.52, .04}}, {{.52, .04}, {.5, .5}, {.5, .96}}},
      {{{.15, .25}, {.3, .07}, {.6, .05}, {.82, .22}, {.74, .45}, {.45, .7}, {.14, .94}}, {{.14, .94}, {.87, .93}}},
      {{{.16, .13}, {.5, .04}, {.8, .2}, {.72, .4}, {.42, .47}},
       {{.42, .47}, {.78, .57}, {.84, .78}, {.55, .96}, {.14, .87}}},
      {{{.6, .04}, {.35, .36}, {.1, .66}}, {{.1, .66}, {.92, .64}}, {{.66, .3}, {.64, .62}, {.62, .97}}},
      {{{.82, .06}, {.25, .08}},
       {{.25, .08}, {.2, .45}},
       {{.2, .45}, {.55, .4}, {.83, .62}, {.7, .9}, {.4, .97}, {.13, .87}}},
      {{{.72, .05}, {.36, .25}, {.17, .6}, {.25, .88}, {.55, .96}, {.8, .78}, {.7, .56}, {.45, .5}, {.2, .66}}},
      {{{.12, .08}, {.86, .07}}, {{.86, .07}, {.6, .45}, {.4, .96}}},
      {{{.5, .47},
        {.24, .33},
        {.26, .13},
        {.5, .04},
        {.74, .13},
        {.76, .33},
        {.5, .47},
        {.2, .65},
        {.19, .86},
        {.5, .96},
        {.81, .86},
        {.8, .65},
        {.5, .47}}},
      {{{.79, .28}, {.6, .07}, {.3, .09}, {.18, .3}, {.35, .5}, {.62, .47}, {.79, .28}},
       {{.79, .28}, {.75, .6}, {.6, .96}}},
  }};
  return kGlyphs;
}

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
    bend_x_ = {random.between(0, .09), random.between(2, 7), random.between(0, 2 * std::numbers::pi)};
    bend_y_ = {random.between(0, .07), random.between(2, 7), random.between(0, 2 * std::numbers::pi)};
    width_ = random.between(9, 17);
    height_ = random.between(15, 22);
    slant_ = random.between(-.3, .3);
    turn_ = random.between(-.3, .3);
    centre_ = {random.between(11.5, 16.5), random.between(12, 16)};
  }

  Point operator()(Point point) const {
    double x = (point.x - .5 + bend_x_.at(point.y)) * width_;
    double y = (point.y - .5 + bend_y_.at(point.x)) * height_;
    x -= slant_ * y;
    return {centre_.x + x * std::cos(turn_) - y * std::sin(turn_),
            centre_.y + x * std::sin(turn_) + y * std::cos(turn_)};
  }

 private:
  struct Wave {
    double height, frequency, phase;
    [[nodiscard]] double at(double where) const { return height * std::sin(frequency * where + phase); }
  };
  Wave bend_x_{}, bend_y_{};
  double width_, height_, slant_, turn_;
  Point centre_{};
};

/// The Catmull-Rom curve between `b` and `c` at `t` in 0…1.
Point on_curve(Point a, Point b, Point c, Point d, double t) {
  auto blend = [t](double p, double q, double r, double s) {
    return .5 * (2 * q + t * (r - p + t * (2 * p - 5 * q + 4 * r - s + t * (3 * (q - r) + s - p))));
  };
  return {blend(a.x, b.x, c.x, d.x), blend(a.y, b.y, c.y, d.y)};
}

/// A stroke as short straight lines, already on the image.
Stroke trace(const Stroke& stroke, const Hand& hand) {
  constexpr int kLines = 4;  // between two points
  Stroke path{hand(stroke.front())};
  for (std::size_t i = 0; i + 1 < stroke.size(); ++i) {
    auto before = stroke[i == 0 ? 0 : i - 1];
    auto after = stroke[std::min(i + 2, stroke.size() - 1)];
    for (int line = 1; line <= kLines; ++line)
      path.push_back(hand(on_curve(before, stroke[i], stroke[i + 1], after, double{1} * line / kLines)));
  }
  return path;
}

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
  Hand hand(random);
  double radius = random.between(.5, 1.7);
  Ink ink{};
  for (const auto& stroke : glyphs()[digit]) {
    auto path = trace(stroke, hand);
    for (std::size_t i = 0; i + 1 < path.size(); ++i) draw_line(ink, path[i], path[i + 1], radius);
  }
  return ink;
}

}  // namespace

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
