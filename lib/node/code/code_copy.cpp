#include "node/code/code_copy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/folders/beneath.hpp"
#include "base/log/log.hpp"
#include "base/text.hpp"
#include "node/code/code_folder.hpp"
#include "node/code/digest.hpp"

namespace taas::node {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kRangeBytes = 256 * 1024;
constexpr std::size_t kMostRanges = 4;  // that are asked for at once
constexpr std::size_t kMostNamed = 3;

/// What a disk has found of an offer.
struct Survey {
  bool in_place = false;
  std::vector<std::string> different;  // in a place that stays as it is
  CodeContents contents;
  std::vector<std::uint32_t> missing;  // one file for each content
};

Survey survey(const run::CodeOffer& offer, const CodeCache& cache, bool may_be_in_place) {
  Survey found;
  if (may_be_in_place) {
    auto place = compare(offer.folder, offer.files);
    found.in_place = place.different.empty() || (place.has_some && !offer.replaces);
    found.different = std::move(place.different);
  }
  if (found.in_place) return found;
  std::set<std::string> seen;
  for (std::uint32_t i = 0; i < offer.files.size(); ++i) {
    const auto& file = offer.files[i];
    if (!file.points_to.empty() || !seen.insert(file.digest).second) continue;
    if (file.size == 0) {
      found.contents[file.digest];
    } else if (auto content = cache.find(file.digest, file.size)) {
      found.contents.emplace(file.digest, std::move(*content));
    } else {
      found.missing.push_back(i);
    }
  }
  return found;
}

/// "a.py, b.py, c.py and 4 more"
std::string some_of(std::vector<std::string> names) {
  const auto count = names.size();
  if (count > kMostNamed) names.resize(kMostNamed);
  return fmt::format("{}{}", fmt::join(names, ", "),
                     count > kMostNamed ? fmt::format(" and {} more", count - kMostNamed) : "");
}

}  // namespace

struct CodeCopy::State : std::enable_shared_from_this<CodeCopy::State> {
  State(boost::asio::io_context& io, Options given) : options(std::move(given)), disk(io) {}

  Result<> take(run::CodeOffer given);
  Result<> take(const run::CodePiece& piece);
  Result<> take(const run::CodeWanted&) { return protocol_error("the coordinator asks an agent for files"); }
  void use(Survey found);
  void ask();
  void lay_out();
  void settle(Result<> how);

  Options options;
  std::shared_ptr<const run::CodeOffer> offer;
  bool busy = false;
  Result<> outcome;
  bool in_place = false;
  // These two are the thread's.
  std::shared_ptr<std::optional<CodeCache>> cache = std::make_shared<std::optional<CodeCache>>();
  std::shared_ptr<std::optional<CodeFolder>> copy = std::make_shared<std::optional<CodeFolder>>();
  std::string copy_path;  // once it is laid out

  CodeContents contents;              // of the offer, as far as they are there
  std::vector<std::string> fetched;   // digests: they are new to the cache
  std::deque<std::uint32_t> missing;  // files that are to be asked for
  std::uint64_t asked = 0;            // so much of the first of them
  struct Range {
    std::uint32_t file;
    std::uint64_t offset;
    std::uint64_t end;
  };
  std::deque<Range> ranges;  // that are asked for; pieces come in this order
  std::string arrived;       // of the file that the first range is of
  DiskThread disk;           // last: its destruction waits for what it was given
};

CodeCopy::CodeCopy(boost::asio::io_context& io, Options options)
    : state_(std::make_shared<State>(io, std::move(options))) {}

CodeCopy::~CodeCopy() {
  state_->disk.run([copy = state_->copy, cache = state_->cache, more = !state_->fetched.empty()] {
    if (*copy) (*copy)->remove();
    if (more) (*cache)->shrink();
  });
}

Result<> CodeCopy::hear(std::string_view frame) {
  auto decoded = run::decode_code_frame(frame);
  if (!decoded) return decoded.error();
  return std::visit([this](auto& told) { return state_->take(std::move(told)); }, *decoded);
}

Result<> CodeCopy::State::take(run::CodeOffer given) {
  for (const auto& file : given.files) {
    if (!is_name_below(file.name)) return protocol_error("the coordinator offers a file outside of its folder");
  }
  offer = std::make_shared<const run::CodeOffer>(std::move(given));
  busy = true;
  outcome = {};
  ranges.clear();
  missing.clear();
  auto found = std::make_shared<Survey>();
  disk.run(
      [found, of = offer, kept = cache, maybe = copy_path.empty(), where = options.environment] {
        if (!*kept) *kept = CodeCache::open(where);
        *found = survey(*of, **kept, maybe);
      },
      [found, of = offer, self = weak_from_this()] {
        auto state = self.lock();
        if (state && state->offer == of && state->busy) state->use(std::move(*found));
      });
  return {};
}

void CodeCopy::State::use(Survey found) {
  in_place = in_place || found.in_place;  // where ranks have worked once they work for good
  if (in_place) {
    if (!found.different.empty()) {
      options.remark(
          fmt::format("{} in {} {} not the same as where the run was started; --sync DIR gives each node its files",
                      some_of(found.different), offer->folder, found.different.size() == 1 ? "is" : "are"));
    }
    return settle({});
  }
  contents = std::move(found.contents);
  missing.assign(found.missing.begin(), found.missing.end());
  log::info(LogPart::kAgent, "{} files of the program, {} of them to be fetched", offer->files.size(), missing.size());
  asked = 0;
  arrived.clear();
  ask();
}

void CodeCopy::State::ask() {
  while (!missing.empty() && ranges.size() < kMostRanges) {
    const auto file = missing.front();
    const auto size = offer->files[file].size;
    const auto part = static_cast<std::uint32_t>(std::min<std::uint64_t>(kRangeBytes, size - asked));
    ranges.push_back({file, asked, asked + part});
    options.send(run::encode(run::CodeWanted{offer->version, file, asked, part}));
    asked += part;
    if (asked < size) continue;
    missing.pop_front();
    asked = 0;
  }
  if (ranges.empty()) lay_out();
}

Result<> CodeCopy::State::take(const run::CodePiece& piece) {
  if (!busy || !offer || piece.version != offer->version || ranges.empty()) return {};  // of an offer that was replaced
  auto& range = ranges.front();
  const bool fits = piece.file == range.file && piece.offset == range.offset && !piece.bytes.empty() &&
                    piece.bytes.size() <= range.end - range.offset;
  if (!fits) return protocol_error("the coordinator sends what was not asked for");
  arrived += piece.bytes;
  range.offset += piece.bytes.size();
  if (range.offset < range.end) return {};
  const auto& file = offer->files[range.file];
  ranges.pop_front();
  if (arrived.size() == file.size) {
    if (sha256(arrived) != file.digest) return protocol_error(fmt::format("{} has not arrived whole", file.name));
    fetched.push_back(file.digest);
    contents[file.digest] = std::exchange(arrived, {});
  }
  ask();
  return {};
}

void CodeCopy::State::lay_out() {
  struct Work {
    Result<> outcome;
    std::string path;
  };
  auto work = std::make_shared<Work>();
  auto all = std::make_shared<CodeContents>(std::move(contents));
  disk.run(
      [work, all, of = offer, made = copy, fresh = fetched, name = options.name, kept = cache] {
        for (const auto& digest : fresh) {
          if (all->contains(digest)) (*kept)->add(digest, all->at(digest));
        }
        if (!*made) {
          auto folder = CodeFolder::make(of->run_folder, name);
          if (!folder) return void(work->outcome = folder.error());
          *made = std::move(*folder);
        }
        work->outcome = (*made)->lay_out(of->files, *all);
        work->path = (*made)->path();
      },
      [work, of = offer, self = weak_from_this()] {
        auto state = self.lock();
        if (!state || state->offer != of || !state->busy) return;
        if (work->outcome) state->copy_path = work->path;
        state->settle(std::move(work->outcome));
      });
}

void CodeCopy::State::settle(Result<> how) {
  busy = false;
  outcome = how ? std::move(how) : Result<>(std::move(how).error().with("the program's files"));
  contents.clear();
  options.on_ready();
}

void CodeCopy::link_is_lost() {
  if (!state_->busy) return;
  state_->ranges.clear();
  state_->missing.clear();
  state_->settle(unavailable_error("the link to the coordinator was lost"));
}

bool CodeCopy::busy() const { return state_->busy; }

Result<> CodeCopy::state() const { return state_->outcome; }

plan::LaunchSettings CodeCopy::redirect(plan::LaunchSettings settings) const {
  if (state_->copy_path.empty()) return settings;
  return node::redirect(std::move(settings), state_->offer->folder, state_->copy_path, state_->offer->files);
}

void CodeCopy::tell_left(std::function<void()> then) {
  if (state_->copy_path.empty()) return then();
  auto left = std::make_shared<std::vector<std::string>>();
  state_->disk.run([left, copy = state_->copy] { *left = (*copy)->written_by_ranks(); },
                   [left, then = std::move(then), self = std::weak_ptr(state_)] {
                     auto state = self.lock();
                     if (!state) return;
                     if (!left->empty()) {
                       state->options.remark(
                           fmt::format("ranks wrote {} into {}, their copy of the program's folder; it stays there",
                                       some_of(*left), state->copy_path));
                     }
                     then();
                   });
}

plan::LaunchSettings redirect(plan::LaunchSettings settings, const std::string& folder, const std::string& copy,
                              const std::vector<run::CodeFile>& files) {
  const auto moved = [&](const std::string& path) {
    if (path == folder) return copy;
    return path.starts_with(folder + "/") ? copy + path.substr(folder.size()) : path;
  };
  auto& program = settings.options.program;
  const auto script = (fs::path(settings.working_directory) / program.program).lexically_normal().string();
  const auto is_script = [&](const run::CodeFile& file) { return folder + "/" + file.name == script; };
  if (!program.module && std::any_of(files.begin(), files.end(), is_script)) {
    program.program = moved(script);
  }
  settings.working_directory = moved(settings.working_directory);
  const auto search = settings.environment.find("PYTHONPATH");
  if (search == settings.environment.end()) return settings;
  std::vector<std::string> places;
  for (const auto place : split(search->second, ':')) places.push_back(moved(std::string(place)));
  search->second = fmt::format("{}", fmt::join(places, ":"));
  return settings;
}

}  // namespace taas::node
