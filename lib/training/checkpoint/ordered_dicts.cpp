#include "training/checkpoint/ordered_dicts.hpp"

#include <cstdint>
#include <cstring>

#include "training/checkpoint/pickle.hpp"

namespace taas {
namespace {

using std::string_view_literals::operator""sv;

// The instructions are those of Python's pickletools.
constexpr auto kOrderedDict = "ccollections\nOrderedDict\n"sv;
constexpr auto kBuild = "b"sv;
constexpr auto kPair = "\x86"sv;  // TUPLE2
constexpr auto kEmptyDict = "}"sv;
constexpr auto kEmptyTuple = ")"sv;
constexpr auto kCall = "R"sv;
constexpr auto kAlone = "}])(RQt\x85\x86\x87suaeN\x88\x89.bld012\x81\x94"sv;

/// A little-endian number of so many bytes; what is cut off counts as nothing.
std::size_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t number = 0;
  if (at + size <= bytes.size()) std::memcpy(&number, bytes.data() + at, size);
  return number;
}

/// How many bytes the first instruction has; none: it is not known.
std::optional<std::size_t> first_length(std::string_view bytes) {
  const char code = bytes.front();
  const auto is_one_of = [code](std::string_view codes) { return codes.find(code) != codes.npos; };
  if (is_one_of(kAlone)) return 1;
  if (is_one_of("\x80qKh"sv)) return 2;
  if (code == 'M') return 3;
  if (is_one_of("rJj"sv)) return 5;
  if (code == 'G') return 9;
  if (is_one_of("\x8aU"sv)) return 2 + number_at(bytes, 1, 1);
  if (is_one_of("XT"sv)) return 5 + number_at(bytes, 1, 4);
  if (code != 'c') return std::nullopt;
  const auto end = bytes.find('\n', bytes.find('\n') + 1);  // a module and a name, each on a line
  return end == bytes.npos ? std::nullopt : std::optional(end + 1);
}

/// Of an instruction that keeps, or takes, what has a number; none: it is another one.
std::optional<std::size_t> number_of(std::string_view instruction, char with_byte, char with_word) {
  if (instruction.front() == with_byte) return number_at(instruction, 1, 1);
  if (instruction.front() == with_word) return number_at(instruction, 1, 4);
  return std::nullopt;
}

bool is_empty_call(const PickleInstructions& all, std::size_t at) {
  return at + 1 < all.size() && all[at] == kEmptyTuple && all[at + 1] == kCall;
}

bool has_metadata(const c10::IValue& value) {
  if (!value.isTuple() || value.toTupleRef().elements().size() != 2) return false;
  const auto& attributes = value.toTupleRef().elements()[1];
  return attributes.isGenericDict() && attributes.toGenericDict().contains("_metadata");
}

}  // namespace

std::optional<PickleInstructions> instructions_of(std::string_view pickle) {
  PickleInstructions all;
  while (!pickle.empty()) {
    const auto length = first_length(pickle);
    if (!length || *length > pickle.size()) return std::nullopt;
    all.push_back(pickle.substr(0, *length));
    pickle.remove_prefix(*length);
  }
  return all;
}

std::string without_ordered_dicts(const PickleInstructions& pickle) {
  std::string result;
  std::optional<std::size_t> kept_as;  // the class, for later calls
  for (std::size_t i = 0; i < pickle.size(); ++i) {
    const auto instruction = pickle[i];
    std::size_t call = i + 1;
    bool is_class = kept_as && number_of(instruction, 'h', 'j') == kept_as;
    if (instruction == kOrderedDict && call < pickle.size()) {
      is_class = true;
      kept_as = number_of(pickle[call], 'q', 'r');
      if (kept_as) ++call;
    }
    if (is_class && is_empty_call(pickle, call)) {
      result += kEmptyDict;
      i = call + 1;
    } else {
      result += instruction == kBuild ? kPair : instruction;
    }
  }
  return result;
}

std::optional<std::string> foreign_class(const PickleInstructions& pickle) {
  for (const auto instruction : pickle) {
    if (instruction.front() != 'c' || instruction == kOrderedDict) continue;
    std::string name(instruction.substr(1, instruction.size() - 2));
    name.replace(name.find('\n'), 1, ".");
    if (!name.starts_with("torch.")) return name;
  }
  return std::nullopt;
}

c10::IValue without_attributes(const c10::IValue& value) {
  if (has_metadata(value)) return without_attributes(value.toTupleRef().elements()[0]);
  if (!value.isGenericDict()) return value;
  auto plain = plain_dict();
  for (const auto& entry : value.toGenericDict()) plain.insert(entry.key(), without_attributes(entry.value()));
  return plain;
}

}  // namespace taas
