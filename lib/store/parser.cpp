#include "store/parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/endian/conversion.hpp>

namespace taas::store {

namespace {

constexpr std::uint64_t kMagic = 0x3C85F7CE;

using Texts = std::vector<std::string>;

template <class T>
Request make_keyed(Texts&& texts, std::uint64_t) {
  return T{std::move(texts[0])};
}
template <class T>
Request make_key_value(Texts&& texts, std::uint64_t) {
  return T{std::move(texts[0]), std::move(texts[1])};
}
template <class T>
Request make_key_number(Texts&& texts, std::uint64_t number) {
  return T{std::move(texts[0]), static_cast<std::int64_t>(number)};
}
template <class T>
Request make_keys(Texts&& texts, std::uint64_t) {
  return T{std::exchange(texts, {})};
}
template <class T>
Request make_bare(Texts&&, std::uint64_t) {
  return T{};
}
Request make_compare_set(Texts&& texts, std::uint64_t) {
  return CompareSet{std::move(texts[0]), std::move(texts[1]), std::move(texts[2])};
}
Request make_multi_set(Texts&& texts, std::uint64_t) {
  MultiSet request;
  request.entries.reserve(texts.size() / 2);
  for (std::size_t i = 0; i < texts.size(); i += 2) {
    request.entries.emplace_back(std::move(texts[i]), std::move(texts[i + 1]));
  }
  return request;
}
Request make_ping(Texts&&, std::uint64_t number) { return Ping{static_cast<std::uint32_t>(number)}; }

}  // namespace

/// What follows the type byte: fields of 'k' key, 'v' value, 'n' 8-byte number, 'm' 4-byte number; all integers are
/// little-endian. A counted request has an 8-byte count first, then the fields that many times.
struct Grammar {
  std::string_view fields;
  bool counted;
  Request (*make)(Texts&& texts, std::uint64_t number);
};

namespace {

constexpr bool kCounted = true;
constexpr bool kPlain = false;

// The index is the type's number on the wire.
constexpr std::array<Grammar, 19> kGrammars = {{
    {"m", kPlain, nullptr},  // VALIDATE is consumed by the parser
    {"kv", kPlain, make_key_value<Set>},
    {"kvv", kPlain, make_compare_set},
    {"k", kPlain, make_keyed<Get>},
    {"kn", kPlain, make_key_number<Add>},
    {"k", kCounted, make_keys<Check>},
    {"k", kCounted, make_keys<Wait>},
    {"", kPlain, make_bare<CountKeys>},
    {"k", kPlain, make_keyed<Delete>},
    {"kv", kPlain, make_key_value<Append>},
    {"k", kCounted, make_keys<MultiGet>},
    {"kv", kCounted, make_multi_set},
    {"", kPlain, make_bare<CancelWait>},
    {"m", kPlain, make_ping},
    {"kv", kPlain, make_key_value<QueuePush>},
    {"k", kPlain, make_keyed<QueuePop>},
    {"k", kPlain, make_keyed<QueueLength>},
    {"", kPlain, make_bare<ListKeys>},
    {"kn", kPlain, make_key_number<Barrier>},
}};
constexpr const Grammar* kValidate = kGrammars.data();

}  // namespace

Result<std::optional<Request>> Parser::next(std::string_view& bytes) {
  while (true) {
    if (is_whole()) {
      auto request = finish_request();
      if (!request || *request) return request;
    } else if (text_left_ > 0) {
      if (!take_text(bytes)) return std::nullopt;
      end_field();
    } else {
      if (!take_number(bytes)) return std::nullopt;
      auto number = boost::endian::endian_load<std::uint64_t, 8, boost::endian::order::little>(
          reinterpret_cast<const unsigned char*>(digits_.data()));
      if (auto accepted = on_number(number); !accepted) return accepted.error();
    }
  }
}

std::size_t Parser::number_width() const {
  if (part_ == Part::kType) return 1;
  if (part_ == Part::kField && grammar_->fields[field_] == 'm') return 4;
  return 8;
}

/// Collects a number's bytes in digits_, padded with zeros; true when it is whole.
bool Parser::take_number(std::string_view& bytes) {
  const auto width = number_width();
  const auto taken = std::min(width - digits_read_, bytes.size());
  std::copy_n(bytes.data(), taken, digits_.data() + digits_read_);
  bytes.remove_prefix(taken);
  digits_read_ += taken;
  if (digits_read_ < width) return false;
  std::fill(digits_.begin() + static_cast<std::ptrdiff_t>(width), digits_.end(), '\0');
  digits_read_ = 0;
  return true;
}

bool Parser::take_text(std::string_view& bytes) {
  const auto taken = std::min<std::uint64_t>(text_left_, bytes.size());
  texts_.back().append(bytes.substr(0, taken));
  bytes.remove_prefix(taken);
  text_left_ -= taken;
  held_ += taken;
  return text_left_ == 0;
}

Result<> Parser::on_number(std::uint64_t number) {
  if (part_ == Part::kType) return begin_request(number);
  if (part_ == Part::kCount) {
    if (number > kMaxKeys) return protocol_error(fmt::format("{} keys in one request, at most {}", number, kMaxKeys));
    groups_left_ = number;
    part_ = Part::kField;
    return {};
  }
  const char kind = grammar_->fields[field_];
  if (kind == 'k' || kind == 'v') return begin_text(kind, number);
  number_ = number;
  end_field();
  return {};
}

Result<> Parser::begin_request(std::uint64_t type) {
  if (type >= kGrammars.size()) return protocol_error(fmt::format("request of unknown type {}", type));
  grammar_ = &kGrammars[type];
  if ((grammar_ == kValidate) == validated_) {
    return protocol_error(fmt::format("request of type {} where the greeting was {}", type,
                                      validated_ ? "already given" : "expected: not a TCPStore client"));
  }
  part_ = grammar_->counted ? Part::kCount : Part::kField;
  groups_left_ = grammar_->fields.empty() ? 0 : 1;
  field_ = 0;
  request_bytes_ = 0;
  return {};
}

Result<> Parser::begin_text(char kind, std::uint64_t length) {
  if (kind == 'k' && length > kMaxKeyBytes) {
    return protocol_error(fmt::format("key of {} bytes, at most {}", length, kMaxKeyBytes));
  }
  if (length > kMaxRequestBytes - request_bytes_) {
    return protocol_error(fmt::format("value of {} bytes in a request of at most {}", length, kMaxRequestBytes));
  }
  request_bytes_ += length;
  text_left_ = length;
  texts_.emplace_back();
  held_ += sizeof(std::string);
  if (length == 0) end_field();
  return {};
}

void Parser::end_field() {
  if (++field_ < grammar_->fields.size()) return;
  field_ = 0;
  --groups_left_;
}

/// nullopt for the greeting, which is no request.
Result<std::optional<Request>> Parser::finish_request() {
  part_ = Part::kType;
  held_ = 0;
  if (grammar_ != kValidate) return grammar_->make(std::exchange(texts_, {}), number_);
  if (number_ != kMagic) return protocol_error(fmt::format("wrong magic number {:#x} in the greeting", number_));
  validated_ = true;
  return std::nullopt;
}

}  // namespace taas::store
