#include "storage/delivery/incoming_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/files.hpp"
#include "base/folders/beneath.hpp"
#include "base/ids.hpp"
#include "storage/publishing/part_file.hpp"

namespace taas::storage {
namespace {

constexpr unsigned kPermissions = 0777;  // no set-user-id, whoever asks for it

class IncomingContent : public IncomingFile {
 public:
  IncomingContent(HeldPath target, PlaceBelow place, const FileHead& head)
      : target_(std::move(target)),
        name_(std::move(place.name)),
        part_(std::move(place.folder), head.mode & kPermissions),
        missing_(head.size) {}

  [[nodiscard]] bool opened() const { return static_cast<bool>(part_.fd()); }
  [[nodiscard]] bool complete() const override { return missing_ == 0; }

  Result<> add(std::string_view bytes) override {
    if (bytes.size() > missing_) return protocol_error(target_.name + ": more bytes came than were said");
    missing_ -= bytes.size();
    if (auto written = write_all(part_.fd(), bytes); !written) {
      return std::move(written.error()).with("cannot write " + target_.path());
    }
    return {};
  }

  Result<> finish() override {
    if (auto renamed = part_.flush_and_rename(name_, target_.path()); !renamed) return renamed;
    return target_.folder.flush(target_.name);
  }

 private:
  HeldPath target_;
  std::string name_;
  PartFile part_;
  std::uint64_t missing_;
};

class IncomingLink : public IncomingFile {
 public:
  IncomingLink(HeldPath target, PlaceBelow place, std::string points_to)
      : target_(std::move(target)), place_(std::move(place)), points_to_(std::move(points_to)) {}

  Result<> add(std::string_view) override { return protocol_error(target_.name + ": a link has no content"); }
  [[nodiscard]] bool complete() const override { return true; }

  Result<> finish() override {
    auto part = ".part-" + random_hex(8);
    int folder = place_.folder.get();
    if (::symlinkat(points_to_.c_str(), folder, part.c_str()) != 0) return failed();
    if (::renameat(folder, part.c_str(), folder, place_.name.c_str()) == 0) return target_.folder.flush(target_.name);
    auto error = failed();
    ::unlinkat(folder, part.c_str(), 0);
    return error;
  }

 private:
  [[nodiscard]] Error failed() const { return system_error("cannot publish the link " + target_.path(), errno); }

  HeldPath target_;
  PlaceBelow place_;
  std::string points_to_;
};

/// Not through other links: "link/.." is the folder above wherever the link leads.
bool climbs_only_at_first(const std::filesystem::path& path, std::size_t depth) {
  std::size_t climbed = 0;
  bool descends = false;
  for (const auto& part : path) {
    bool up = part == "..";
    if (up && (descends || ++climbed > depth)) return false;
    descends = descends || (!up && part != ".");
  }
  return true;
}

}  // namespace

bool link_stays_below(const std::string& name, const std::string& points_to, const std::string& files) {
  if (points_to.empty() || points_to.find('\0') != std::string::npos) return false;
  if (points_to.front() != '/') {
    auto depth = static_cast<std::size_t>(std::count(name.begin(), name.end(), '/'));
    return climbs_only_at_first(points_to, depth);
  }
  if (points_to.rfind(files + "/", 0) != 0) return false;
  return climbs_only_at_first(points_to.substr(files.size() + 1), 0);
}

Result<std::unique_ptr<IncomingFile>> begin_file(const HeldFolder& files, const std::string& shown, FileHead head) {
  bool is_link = !head.points_to.empty();
  if (is_link && !link_stays_below(head.name, head.points_to, shown)) {
    return unavailable_error(
        fmt::format("{} is a link to {}, which is not among the run's files", head.name, head.points_to));
  }
  auto place = open_place_below(files.descriptor(), head.name, Missing::kMake);
  if (!place) return place.error();
  HeldPath target{files, head.name};
  if (is_link) return std::make_unique<IncomingLink>(std::move(target), std::move(*place), std::move(head.points_to));
  auto content = std::make_unique<IncomingContent>(target, std::move(*place), head);
  if (!content->opened()) return system_error("cannot create " + target.path(), errno);
  return content;
}

}  // namespace taas::storage
