#include "run/events/pickle.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

namespace taas::run {
namespace {

namespace json = boost::json;

/// Of all that is kept while one is read, and of what it becomes: what is named several times counts each time.
constexpr std::size_t kMostBytes = 128 << 20;
constexpr std::size_t kNode = 64;  // of a map or an object, with its allocation
constexpr int kDeepest = 50;

/// Lists and dicts are filled after they were named, so values refer to each other by their place.
struct Value {
  enum class Kind { kPlain, kList, kDict };
  Kind kind = Kind::kPlain;
  json::value plain;
  std::vector<std::size_t> items;  // of a dict: key, value, key, value …
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::optional<json::value> read() {
    while (valid_ && !ended_) step(static_cast<unsigned char>(take(1).empty() ? '\0' : last_.front()));
    if (!valid_ || stack_.size() != 1) return std::nullopt;
    auto result = build(stack_.back(), 0);
    if (!valid_) return std::nullopt;
    return result;
  }

 private:
  std::string_view take(std::size_t count) {
    valid_ = valid_ && count <= rest_.size();
    last_ = valid_ ? rest_.substr(0, count) : std::string_view();
    rest_.remove_prefix(last_.size());
    return last_;
  }

  /// Little-endian.
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    auto digits = take(bytes);
    for (std::size_t i = 0; i < digits.size(); ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(digits[i])} << (8 * i);
    }
    return value;
  }

  /// Two's complement of up to eight bytes; none is 0.
  std::int64_t long_integer(std::size_t bytes) {
    valid_ = valid_ && bytes <= sizeof(std::int64_t);
    if (!valid_ || bytes == 0) return 0;
    auto shift = 64 - 8 * bytes;
    return static_cast<std::int64_t>(number(bytes) << shift) >> shift;
  }

  double big_endian_double() {
    std::uint64_t bits = 0;
    for (char byte : take(sizeof(double))) bits = bits << 8 | static_cast<unsigned char>(byte);
    return std::bit_cast<double>(bits);
  }

  void spend(std::size_t bytes) {
    valid_ = valid_ && bytes <= left_;
    if (valid_) left_ -= bytes;
  }

  void push(Value value) {
    spend(sizeof(Value) + sizeof(std::size_t) * (1 + value.items.size()) + bytes_of(value));
    if (!valid_) return;
    values_.push_back(std::move(value));
    stack_.push_back(values_.size() - 1);
  }
  void push(json::value plain) { push(Value{Value::Kind::kPlain, std::move(plain), {}}); }
  void push(Value::Kind kind, std::vector<std::size_t> items) { push(Value{kind, {}, std::move(items)}); }

  std::vector<std::size_t> pop(std::size_t count) {
    valid_ = valid_ && count <= stack_.size();
    if (!valid_) return {};
    std::vector<std::size_t> items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }

  std::vector<std::size_t> pop_to_mark() {
    valid_ = valid_ && !marks_.empty() && marks_.back() <= stack_.size();
    if (!valid_) return {};
    auto mark = marks_.back();
    marks_.pop_back();
    return pop(stack_.size() - mark);
  }

  void append(Value::Kind kind, const std::vector<std::size_t>& items) {
    valid_ = valid_ && !stack_.empty() && values_[stack_.back()].kind == kind;
    if (!valid_) return;
    auto& container = values_[stack_.back()].items;
    container.insert(container.end(), items.begin(), items.end());
  }

  static std::size_t bytes_of(const Value& value) {
    return value.plain.is_string() ? value.plain.get_string().size() : 0;
  }

  void mark() {
    spend(sizeof(std::size_t));
    if (valid_) marks_.push_back(stack_.size());
  }

  void remember(std::size_t name) {
    spend(kNode);
    valid_ = valid_ && !stack_.empty();
    if (valid_) memo_[name] = stack_.back();
  }

  void recall(std::size_t name) {
    auto found = memo_.find(name);
    spend(sizeof(std::size_t));
    valid_ = valid_ && found != memo_.end();
    if (valid_) stack_.push_back(found->second);
  }

  void step(unsigned char opcode);
  void step_into_container(unsigned char opcode);
  json::value build(std::size_t at, int depth);

  std::string_view rest_;
  std::string_view last_;
  std::vector<Value> values_;
  std::vector<std::size_t> stack_;
  std::vector<std::size_t> marks_;
  std::map<std::size_t, std::size_t> memo_;
  std::size_t left_ = kMostBytes;
  bool valid_ = true;
  bool ended_ = false;
};

// clang-format off
void Reader::step(unsigned char opcode) {
  switch (opcode) {
    case 0x80: take(1); break;                                                 // PROTO
    case 0x95: take(8); break;                                                 // FRAME
    case '.': ended_ = true; break;                                            // STOP
    case 'N': push(json::value()); break;                                      // NONE
    case 0x88: push(json::value(true)); break;                                 // NEWTRUE
    case 0x89: push(json::value(false)); break;                                // NEWFALSE
    case 'K': push(json::value(static_cast<std::int64_t>(number(1)))); break;  // BININT1
    case 'M': push(json::value(static_cast<std::int64_t>(number(2)))); break;  // BININT2
    case 'J': push(json::value(long_integer(4))); break;                       // BININT
    case 0x8a: push(json::value(long_integer(number(1)))); break;              // LONG1
    case 'G': push(json::value(big_endian_double())); break;                   // BINFLOAT
    case 'X': push(json::value(take(number(4)))); break;                       // BINUNICODE
    case 0x8c: push(json::value(take(number(1)))); break;                      // SHORT_BINUNICODE
    case 0x8d: push(json::value(take(number(8)))); break;                      // BINUNICODE8
    case 'q': remember(number(1)); break;                                      // BINPUT
    case 'r': remember(number(4)); break;                                      // LONG_BINPUT
    case 0x94: remember(memo_.size()); break;                                  // MEMOIZE
    case 'h': recall(number(1)); break;                                        // BINGET
    case 'j': recall(number(4)); break;                                        // LONG_BINGET
    default: step_into_container(opcode);
  }
}

void Reader::step_into_container(unsigned char opcode) {
  switch (opcode) {
    case '(': mark(); break;                                                   // MARK
    case ']': push(Value::Kind::kList, {}); break;                             // EMPTY_LIST
    case ')': push(Value::Kind::kList, {}); break;                             // EMPTY_TUPLE
    case '}': push(Value::Kind::kDict, {}); break;                             // EMPTY_DICT
    case 0x85: push(Value::Kind::kList, pop(1)); break;                        // TUPLE1
    case 0x86: push(Value::Kind::kList, pop(2)); break;                        // TUPLE2
    case 0x87: push(Value::Kind::kList, pop(3)); break;                        // TUPLE3
    case 't': push(Value::Kind::kList, pop_to_mark()); break;                  // TUPLE
    case 'a': append(Value::Kind::kList, pop(1)); break;                       // APPEND
    case 'e': append(Value::Kind::kList, pop_to_mark()); break;                // APPENDS
    case 's': append(Value::Kind::kDict, pop(2)); break;                       // SETITEM
    case 'u': append(Value::Kind::kDict, pop_to_mark()); break;                // SETITEMS
    default: valid_ = false;
  }
}
// clang-format on

json::value Reader::build(std::size_t at, int depth) {
  const auto& value = values_[at];
  spend(sizeof(json::value) + bytes_of(value));
  valid_ = valid_ && depth < kDeepest;
  if (!valid_) return {};
  if (value.kind == Value::Kind::kPlain) return value.plain;
  if (value.kind == Value::Kind::kList) {
    json::array list;
    for (auto item : value.items) list.push_back(build(item, depth + 1));
    return list;
  }
  json::object dict;
  for (std::size_t i = 0; i + 1 < value.items.size(); i += 2) {
    const auto& key = values_[value.items[i]].plain;
    valid_ = valid_ && key.is_string();
    spend(kNode + bytes_of(values_[value.items[i]]));
    if (!valid_) return {};
    dict[key.get_string()] = build(value.items[i + 1], depth + 1);
  }
  return dict;
}

}  // namespace

std::optional<boost::json::value> read_pickle(std::string_view bytes) { return Reader(bytes).read(); }

}  // namespace taas::run
