#include "digits.hpp"

#include <unistd.h>
#include <zlib.h>

#include <fstream>

#include "catch.hpp"
#include "input_error.hpp"

namespace digits_test {

namespace {
namespace fs = std::filesystem;
using taas::train::InputError;

std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

/// Image i is filled with the number i.
std::string images(std::uint32_t count, std::uint32_t magic = 0x803, std::uint32_t rows = 28) {
  auto bytes = big_endian(magic) + big_endian(count) + big_endian(rows) + big_endian(28);
  for (std::uint32_t i = 0; i < count; ++i) bytes += std::string(784, static_cast<char>(i));
  return bytes;
}

/// Label i is i mod 10.
std::string labels(std::uint32_t count, std::uint32_t magic = 0x801) {
  auto bytes = big_endian(magic) + big_endian(count);
  for (std::uint32_t i = 0; i < count; ++i) bytes += static_cast<char>(i % 10);
  return bytes;
}

/// A folder of its own for each test, gone with it.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("taas-digits-" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path / name, std::ios::binary) << bytes;
  }
  void write_gzip(const std::string& name, const std::string& bytes) const {
    auto* file = gzopen((path / name).c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
  }
  void write_pair(const std::string& prefix, std::uint32_t count) const {
    write(prefix + "-images-idx3-ubyte", images(count));
    write(prefix + "-labels-idx1-ubyte", labels(count));
  }
  /// What reading these two files says, in one line.
  [[nodiscard]] std::string refusal(const std::string& image_bytes, const std::string& label_bytes) const {
    write("t10k-images-idx3-ubyte", image_bytes);
    write("t10k-labels-idx1-ubyte", label_bytes);
    return refusal();
  }
  [[nodiscard]] std::string refusal() const {
    try {
      taas::train::read_digits(path);
    } catch (const InputError& error) {
      return error.what();
    }
    return "none";
  }
};

}  // namespace

TEST_CASE("plain files of both sets are read as they are") {
  Folder folder;
  folder.write_pair("train", 12);
  folder.write_pair("t10k", 5);
  auto digits = taas::train::read_digits(folder.path);
  CHECK(digits.train.size() == 12);
  CHECK(digits.test.size() == 5);
  CHECK(digits.train.pixels.size() == 12 * 784);
  CHECK(digits.train.pixels[11 * 784] == 11);
  CHECK(digits.train.labels[11] == 1);
}

TEST_CASE("gzip files are read under their own name, and beside plain ones") {
  Folder folder;
  folder.write_gzip("t10k-images-idx3-ubyte.gz", images(10));
  folder.write("t10k-labels-idx1-ubyte", labels(10));
  CHECK(taas::train::read_digits(folder.path).test.labels == std::vector<std::uint8_t>{8, 9});
}

TEST_CASE("a test set alone is split: the first 80 % to train") {
  Folder folder;
  folder.write_pair("t10k", 10);
  auto digits = taas::train::read_digits(folder.path);
  CHECK(digits.train.size() == 8);
  CHECK(digits.test.labels == std::vector<std::uint8_t>{8, 9});
  CHECK(digits.test.pixels.front() == 8);
  CHECK(digits.test.pixels.size() == 2 * 784);
}

TEST_CASE("files that are wrong are named, with what is wrong") {
  Folder folder;
  CHECK_THAT(folder.refusal("hello, this is text", labels(4)), ContainsSubstring("is not an IDX file of images"));
  CHECK_THAT(folder.refusal(labels(4), images(4)), ContainsSubstring("t10k-images-idx3-ubyte is not"));
  CHECK_THAT(folder.refusal(images(4), images(4)), ContainsSubstring("is not an IDX file of labels"));
  CHECK_THAT(folder.refusal(images(4, 0x803, 32), labels(4)), ContainsSubstring("32x28"));
  CHECK_THAT(folder.refusal(images(4), labels(5)), ContainsSubstring("4 images") && ContainsSubstring("5 labels"));
  CHECK_THAT(folder.refusal(images(4) + "x", labels(4)), ContainsSubstring("longer than its header says"));
  CHECK_THAT(folder.refusal(images(1), big_endian(0x801) + big_endian(1) + "\x0b"), ContainsSubstring("label 11"));
  CHECK_THAT(folder.refusal("", labels(4)), ContainsSubstring("0 of 4 bytes"));
  CHECK(folder.refusal(images(4), labels(4)) == "none");
}

TEST_CASE("a file that is cut off is named, plain or gzip, whatever its header promises") {
  Folder folder;
  auto whole = images(4);
  CHECK_THAT(folder.refusal(whole.substr(0, 1000), labels(4)), ContainsSubstring("984 of 3136 bytes"));
  auto boast = big_endian(0x803) + big_endian(0xffffffff) + big_endian(28) + big_endian(28);
  CHECK_THAT(folder.refusal(boast, labels(4)), ContainsSubstring("cut off"));
  fs::remove(folder.path / "t10k-images-idx3-ubyte");
  folder.write_gzip("t10k-images-idx3-ubyte.gz", images(100));
  fs::resize_file(folder.path / "t10k-images-idx3-ubyte.gz", 60);
  CHECK_THAT(folder.refusal(), ContainsSubstring("t10k-images-idx3-ubyte.gz is cut off or damaged"));
}

TEST_CASE("what is missing is named, with the way out") {
  Folder folder;
  CHECK_THAT(folder.refusal(), ContainsSubstring(folder.path.string()) && ContainsSubstring("--data"));
  folder.write("t10k-images-idx3-ubyte", images(1));
  CHECK_THAT(folder.refusal(), ContainsSubstring("not the labels"));
  CHECK_THROWS_WITH(taas::train::read_digits("/no/such/folder"), ContainsSubstring("/no/such/folder"));
}

}  // namespace digits_test
