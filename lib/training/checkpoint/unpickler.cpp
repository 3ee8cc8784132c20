#include "training/checkpoint/unpickler.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/util/complex.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "training/checkpoint/pickle.hpp"

// The instructions are those of Python's pickletools, and what is allowed is that of torch/_weights_only_unpickler.py.

namespace taas {
namespace {

constexpr int kDeepest = 200;  ///< levels of lists and dictionaries

struct Mark {};
struct Global {
  std::string name;
};
struct Stored {
  c10::Storage storage;
  std::optional<at::ScalarType> type;  ///< none: that of the tensor
};
struct Items;
/// A tuple may be the arguments of a call, and hold what is no value; as one it is made once.
using Item = std::variant<c10::IValue, Mark, Global, Stored, std::shared_ptr<Items>>;
struct Items {
  std::vector<Item> items;
  int depth = 0;  ///< levels of tuples below it
  c10::IValue value{};
};

[[noreturn]] void broken_pickle(const std::string& what) { throw std::runtime_error("pickle: " + what); }

/// "torch.float16" and "FloatStorage" and their like.
std::optional<at::ScalarType> type_called(std::string_view name) {
  using at::ScalarType;
  static const std::unordered_map<std::string_view, ScalarType> kTypes{{"float32", at::kFloat},
                                                                       {"float", at::kFloat},
                                                                       {"FloatStorage", at::kFloat},
                                                                       {"float64", at::kDouble},
                                                                       {"double", at::kDouble},
                                                                       {"DoubleStorage", at::kDouble},
                                                                       {"float16", at::kHalf},
                                                                       {"half", at::kHalf},
                                                                       {"HalfStorage", at::kHalf},
                                                                       {"bfloat16", at::kBFloat16},
                                                                       {"BFloat16Storage", at::kBFloat16},
                                                                       {"int64", at::kLong},
                                                                       {"long", at::kLong},
                                                                       {"LongStorage", at::kLong},
                                                                       {"int32", at::kInt},
                                                                       {"int", at::kInt},
                                                                       {"IntStorage", at::kInt},
                                                                       {"int16", at::kShort},
                                                                       {"short", at::kShort},
                                                                       {"ShortStorage", at::kShort},
                                                                       {"int8", at::kChar},
                                                                       {"CharStorage", at::kChar},
                                                                       {"uint8", at::kByte},
                                                                       {"ByteStorage", at::kByte},
                                                                       {"bool", at::kBool},
                                                                       {"BoolStorage", at::kBool},
                                                                       {"complex64", at::kComplexFloat},
                                                                       {"cfloat", at::kComplexFloat},
                                                                       {"ComplexFloatStorage", at::kComplexFloat},
                                                                       {"complex128", at::kComplexDouble},
                                                                       {"cdouble", at::kComplexDouble},
                                                                       {"ComplexDoubleStorage", at::kComplexDouble},
                                                                       {"complex32", at::kComplexHalf},
                                                                       {"uint16", ScalarType::UInt16},
                                                                       {"uint32", ScalarType::UInt32},
                                                                       {"uint64", ScalarType::UInt64},
                                                                       {"float8_e4m3fn", at::kFloat8_e4m3fn},
                                                                       {"float8_e4m3fnuz", at::kFloat8_e4m3fnuz},
                                                                       {"float8_e5m2", at::kFloat8_e5m2},
                                                                       {"float8_e5m2fnuz", at::kFloat8_e5m2fnuz},
                                                                       {"float8_e8m0fnu", at::kFloat8_e8m0fnu}};
  const auto found = kTypes.find(name.substr(name.rfind('.') + 1));
  return found == kTypes.end() ? std::nullopt : std::optional(found->second);
}

/// A view of a storage that must not reach beyond its end.
at::Tensor tensor_in(const c10::Storage& storage, at::ScalarType type, std::int64_t offset, at::IntArrayRef sizes,
                     at::IntArrayRef strides) {
  if (offset < 0 || sizes.size() != strides.size()) broken_pickle("a tensor without a place");
  bool too_large = false;
  const auto product = [&](std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    too_large = too_large || __builtin_mul_overflow(a, b, &result);
    return result;
  };
  std::int64_t end = offset, count = 1;  // one behind the last element
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || strides[i] < 0) broken_pickle("a tensor of a negative size");
    count = product(count, sizes[i]);
    if (sizes[i] > 0) too_large = too_large || __builtin_add_overflow(end, product(sizes[i] - 1, strides[i]), &end);
  }
  too_large = too_large || __builtin_add_overflow(end, 1, &end);
  const auto bytes = product(end, static_cast<std::int64_t>(c10::elementSize(type)));
  if (too_large || (count > 0 && bytes > static_cast<std::int64_t>(storage.nbytes()))) {
    broken_pickle("a tensor that is larger than its memory");
  }
  return at::empty({0}, at::TensorOptions(type)).set_(storage, offset, sizes, strides);
}

/// The one kind of item that is wanted.
template <class Kind>
const Kind& as(const Item& item) {
  const auto* kind = std::get_if<Kind>(&item);
  if (!kind) broken_pickle("something of another kind than is wanted");
  return *kind;
}

c10::IValue value_of(const Item& item) {
  if (const auto* value = std::get_if<c10::IValue>(&item)) return *value;
  if (const auto* global = std::get_if<Global>(&item)) {
    if (global->name.starts_with("torch.") && type_called(global->name)) return global->name;
    throw UnknownObject{"Python's " + global->name};
  }
  const auto& tuple = *as<std::shared_ptr<Items>>(item);
  if (!tuple.value.isNone()) return tuple.value;
  std::vector<c10::IValue> values;
  for (const auto& element : tuple.items) values.push_back(value_of(element));
  return c10::ivalue::Tuple::create(std::move(values));
}

std::vector<std::int64_t> numbers_in(const Item& item) {
  std::vector<std::int64_t> numbers;
  for (const auto& number : as<std::shared_ptr<Items>>(item)->items) numbers.push_back(value_of(number).toInt());
  return numbers;
}

bool is_key(const c10::IValue& value) {
  return value.isString() || value.isInt() || value.isDouble() || value.isBool() || value.isDevice();
}

/// Latin-1 text, as which protocol 2 has bytes, from UTF-8.
std::string bytes_in(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) {
      bytes += text[i];
    } else if (i + 1 < text.size() && first <= 0xc3) {
      bytes += static_cast<char>((first << 6U) | (static_cast<unsigned char>(text[++i]) & 0x3fU));
    } else {
      broken_pickle("bytes that are none");
    }
  }
  return bytes;
}

class Unpickler {
 public:
  Unpickler(std::string_view pickle, const ReadStorage& read_storage) : rest_(pickle), read_storage_(read_storage) {}
  ~Unpickler() = default;
  Unpickler(const Unpickler&) = delete;
  Unpickler& operator=(const Unpickler&) = delete;

  c10::IValue run() try {
    while (step(take(1).front())) {
    }
    auto value = value_of(pop());
    check(value, 0);
    return value;
  } catch (...) {  // what holds itself would never go
    for (auto& dict : dicts_) dict.clear();
    for (auto& list : lists_) list.clear();
    throw;
  }

 private:
  using Dict = c10::impl::GenericDict;
  using List = c10::impl::GenericList;
  using Arguments = std::vector<Item>;

  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) broken_pickle("it is cut off");
    const auto taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  template <class Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
    return value;
  }
  std::string line() {
    std::string text(take(std::min(rest_.find('\n'), rest_.size())));
    take(1);
    return text;
  }

  Item& top() {
    if (stack_.empty()) broken_pickle("nothing is there to be taken");
    return stack_.back();
  }
  Item pop() {
    auto item = std::move(top());
    stack_.pop_back();
    return item;
  }
  void push(Item item) { stack_.push_back(std::move(item)); }
  void push_value(c10::IValue value) { stack_.emplace_back(std::move(value)); }
  /// All above the last mark, which goes, too.
  Arguments pop_marked() {
    auto mark = stack_.size();
    while (mark > 0 && !std::holds_alternative<Mark>(stack_[mark - 1])) --mark;
    if (mark == 0) broken_pickle("no mark");
    Arguments items(std::make_move_iterator(stack_.begin() + static_cast<std::ptrdiff_t>(mark)),
                    std::make_move_iterator(stack_.end()));
    stack_.resize(mark - 1);
    return items;
  }
  void push_tuple(std::size_t count) {
    Arguments items(count);
    for (auto item = items.rbegin(); item != items.rend(); ++item) *item = pop();
    push_tuple(std::move(items));
  }
  void push_tuple(Arguments items) {
    auto tuple = std::make_shared<Items>(Items{std::move(items)});
    for (const auto& item : tuple->items) {
      const auto* inner = std::get_if<std::shared_ptr<Items>>(&item);
      if (inner) tuple->depth = std::max(tuple->depth, (*inner)->depth + 1);
    }
    if (tuple->depth > kDeepest) throw UnknownObject{"tuples in more than 200 levels"};  // or their end takes the stack
    const auto is_value = [](const Item& item) {
      const auto* inner = std::get_if<std::shared_ptr<Items>>(&item);
      return inner ? !(*inner)->value.isNone() : std::holds_alternative<c10::IValue>(item);
    };
    if (std::all_of(tuple->items.begin(), tuple->items.end(), is_value)) tuple->value = value_of(tuple);
    push(std::move(tuple));
  }
  Dict new_dict() { return dicts_.emplace_back(plain_dict()); }
  List new_list() { return lists_.emplace_back(plain_list()); }

  bool step(char code);
  bool step_over_text(char code);
  bool step_over_stack(char code);
  void append(const Arguments& items);
  void set_items(const Arguments& items);
  void build();
  Item result_of(const std::string& name, const Arguments& arguments);
  c10::IValue dictionary_of(const Arguments& arguments);
  Stored stored(const Arguments& arguments);
  void check(const c10::IValue& value, int depth);

  std::string_view rest_;
  const ReadStorage& read_storage_;
  std::vector<Item> stack_;
  std::unordered_map<std::size_t, Item> memo_;
  std::unordered_map<std::string, c10::Storage> storages_;
  std::vector<Dict> dicts_;
  std::vector<List> lists_;
  std::unordered_map<const void*, bool> checked_;  ///< whether a container's check is through
};

/// False: the pickle is at its end.
bool Unpickler::step(char code) {
  switch (code) {
    case '.':
      return false;
    case '\x80':
      take(1);
      break;  // the protocol
    case '\x95':
      take(8);
      break;  // how long a frame is
    case 'N':
      push_value({});
      break;
    case '\x88':
      push_value(true);
      break;
    case '\x89':
      push_value(false);
      break;
    case 'K':
      push_value(std::int64_t{number<std::uint8_t>()});
      break;
    case 'M':
      push_value(std::int64_t{number<std::uint16_t>()});
      break;
    case 'J':
      push_value(std::int64_t{number<std::int32_t>()});
      break;
    case 'G':
      push_value(std::bit_cast<double>(__builtin_bswap64(number<std::uint64_t>())));
      break;
    case '\x8a': {
      const auto bytes = take(number<std::uint8_t>());
      if (bytes.size() > sizeof(std::int64_t)) throw UnknownObject{"a number of more than 64 bits"};
      std::int64_t value = !bytes.empty() && bytes.back() < 0 ? -1 : 0;
      std::memcpy(&value, bytes.data(), bytes.size());
      push_value(value);
      break;
    }
    default:
      return step_over_text(code) || step_over_stack(code);
  }
  return true;
}

bool Unpickler::step_over_text(char code) {
  switch (code) {
    case 'X':
    case 'T':
    case 'B':
      push_value(std::string(take(number<std::uint32_t>())));
      break;
    case '\x8c':
    case 'U':
    case 'C':
      push_value(std::string(take(number<std::uint8_t>())));
      break;
    case '\x8d':
    case '\x8e':
      push_value(std::string(take(number<std::uint64_t>())));
      break;
    case 'c': {
      const auto module = line();
      push(Global{(module == "__builtin__" ? "builtins" : module) + "." + line()});
      break;
    }
    case '\x93': {
      const auto name = value_of(pop()).toStringRef();
      push(Global{value_of(pop()).toStringRef() + "." + name});
      break;
    }
    default:
      return false;
  }
  return true;
}

bool Unpickler::step_over_stack(char code) {
  switch (code) {
    case '(':
      push(Mark{});
      break;
    case '0':
      pop();
      break;
    case '1':
      pop_marked();
      break;
    case '2':
      push(Item(top()));
      break;
    case ')':
      push_tuple(0);
      break;
    case '\x85':
      push_tuple(1);
      break;
    case '\x86':
      push_tuple(2);
      break;
    case '\x87':
      push_tuple(3);
      break;
    case 't':
      push_tuple(pop_marked());
      break;
    case '}':
      push_value(new_dict());
      break;
    case ']':
    case '\x8f':
      push_value(new_list());
      break;
    case 'a': {
      const auto item = pop();
      append({item});
      break;
    }
    case 'e':
    case '\x90':
      append(pop_marked());
      break;
    case 's': {
      const auto value = pop(), key = pop();
      set_items({key, value});
      break;
    }
    case 'u':
      set_items(pop_marked());
      break;
    case 'q':
      memo_[number<std::uint8_t>()] = top();
      break;
    case 'r':
      memo_[number<std::uint32_t>()] = top();
      break;
    case '\x94':
      memo_[memo_.size()] = top();
      break;
    case 'h':
      push(memo_.at(number<std::uint8_t>()));
      break;
    case 'j':
      push(memo_.at(number<std::uint32_t>()));
      break;
    case 'b':
      build();
      break;
    case 'Q':
      push(stored(as<std::shared_ptr<Items>>(pop())->items));
      break;
    case 'R':
    case '\x81': {  // a call, and a new object of a class
      const auto arguments = as<std::shared_ptr<Items>>(pop());
      push(result_of(as<Global>(pop()).name, arguments->items));
      break;
    }
    default:
      broken_pickle("an unknown instruction");
  }
  return true;
}

void Unpickler::append(const Arguments& items) {
  auto list = as<c10::IValue>(top()).toList();
  for (const auto& item : items) list.push_back(value_of(item));
}

void Unpickler::set_items(const Arguments& items) {
  auto dict = as<c10::IValue>(top()).toGenericDict();
  if (items.size() % 2 != 0) broken_pickle("a key without a value");
  for (std::size_t i = 0; i < items.size(); i += 2) {
    const auto key = value_of(items[i]);
    if (!is_key(key)) throw UnknownObject{"a dictionary with a key of type " + key.tagKind()};
    dict.insert_or_assign(key, value_of(items[i + 1]));
  }
}

/// Attributes, of a state dict (`_metadata`) or a tensor: left out.
void Unpickler::build() {
  pop();
  const auto& object = as<c10::IValue>(top());
  if (!object.isGenericDict() && !object.isTensor()) throw UnknownObject{"an object with attributes"};
}

/// An OrderedDict or a Counter, from nothing, pairs or a dictionary.
c10::IValue Unpickler::dictionary_of(const Arguments& arguments) {
  auto dict = new_dict();
  if (arguments.empty()) return dict;
  const auto from = value_of(arguments.front());
  if (from.isGenericDict()) return from;
  for (const auto& pair : from.toListRef()) {
    const auto both = pair.isTuple() ? pair.toTupleRef().elements().vec() : pair.toListRef().vec();
    if (both.size() != 2 || !is_key(both[0])) throw UnknownObject{"a dictionary with keys that are none here"};
    dict.insert_or_assign(both[0], both[1]);
  }
  return dict;
}

Stored Unpickler::stored(const Arguments& arguments) {
  if (arguments.size() < 5 || value_of(arguments[0]).toStringRef() != "storage") broken_pickle("no storage");
  const auto& kind = as<Global>(arguments[1]).name;
  const bool untyped = kind == "torch.storage.UntypedStorage" || kind == "torch.UntypedStorage";
  const auto type = untyped ? std::nullopt : type_called(kind);
  if (!untyped && !type) throw UnknownObject{"a tensor of Python's " + kind};
  const auto& key = value_of(arguments[2]).toStringRef();
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(value_of(arguments[4]).toInt(), type ? c10::elementSize(*type) : 1, &bytes) || bytes < 0) {
    broken_pickle("a storage that is too large");
  }
  auto found = storages_.find(key);
  if (found == storages_.end()) {
    found = storages_.emplace(key, read_storage_(key, static_cast<std::uint64_t>(bytes))).first;
  }
  return {found->second, type};
}

at::Tensor dense(const std::vector<Item>& arguments, std::optional<at::ScalarType> type) {
  const auto& stored = as<Stored>(arguments.at(0));
  if (!type) type = stored.type;
  if (!type) broken_pickle("a tensor without a type");
  return tensor_in(stored.storage, *type, value_of(arguments.at(1)).toInt(), numbers_in(arguments.at(2)),
                   numbers_in(arguments.at(3)));
}

at::Tensor sparse(const std::vector<Item>& arguments) {
  const auto layout = value_of(arguments.at(0));
  const bool coordinates = layout.isString() ? layout.toStringRef() == "torch.sparse_coo"
                                             : layout.toInt() == static_cast<std::int64_t>(at::kSparse);
  if (!coordinates) throw UnknownObject{"a sparse tensor of a layout other than torch.sparse_coo"};
  const auto& parts = as<std::shared_ptr<Items>>(arguments.at(1))->items;
  return at::sparse_coo_tensor(value_of(parts.at(0)).toTensor(), value_of(parts.at(1)).toTensor(),
                               numbers_in(parts.at(2)));
}

/// Of a call of what Python calls `name`.
Item Unpickler::result_of(const std::string& name, const Arguments& arguments) {
  if (name == "torch._utils._rebuild_tensor_v2" || name == "torch._utils._rebuild_tensor") return dense(arguments, {});
  if (name == "torch._utils._rebuild_tensor_v3") return dense(arguments, type_called(as<Global>(arguments.at(6)).name));
  if (name == "torch._utils._rebuild_sparse_tensor") return sparse(arguments);
  if (name == "torch._utils._rebuild_parameter") return arguments.at(0);
  if (name == "torch._tensor._rebuild_from_type_v2") {
    return result_of(as<Global>(arguments.at(0)).name, as<std::shared_ptr<Items>>(arguments.at(2))->items);
  }
  if (name == "collections.OrderedDict" || name == "collections.Counter") return dictionary_of(arguments);
  if (name == "torch.Size") return arguments.at(0);
  if (name == "torch.serialization._get_layout") return arguments.at(0);
  if (name == "torch.device") {
    auto text = value_of(arguments.at(0)).toStringRef();
    if (arguments.size() > 1) text += ":" + std::to_string(value_of(arguments[1]).toInt());
    return c10::IValue(c10::Device(text));
  }
  if (name == "builtins.complex") {
    return c10::IValue(
        c10::complex<double>(value_of(arguments.at(0)).toDouble(), value_of(arguments.at(1)).toDouble()));
  }
  if (name == "builtins.set") return arguments.empty() ? c10::IValue(new_list()) : value_of(arguments[0]);
  if (name == "_codecs.encode") return c10::IValue(bytes_in(value_of(arguments.at(0)).toStringRef()));
  throw UnknownObject{"an object of Python's class " + name};
}

/// Refuses what holds itself, and what is nested too deep for those who go through it.
void Unpickler::check(const c10::IValue& value, int depth) {
  if (depth > kDeepest) throw UnknownObject{"lists or dictionaries in more than 200 levels"};
  if (!value.isGenericDict() && !value.isList() && !value.isTuple()) return;
  const void* container = value.internalToPointer();
  const auto [entry, is_new] = checked_.emplace(container, false);
  if (!is_new) {
    if (!entry->second) throw UnknownObject{"a list or a dictionary that holds itself"};
    return;
  }
  if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) check(item.value(), depth + 1);
  } else if (value.isList()) {
    for (const auto& item : value.toListRef()) check(item, depth + 1);
  } else {
    for (const auto& item : value.toTupleRef().elements()) check(item, depth + 1);
  }
  checked_[container] = true;
}

}  // namespace

c10::IValue unpickled(std::string_view pickle, const ReadStorage& read_storage) {
  return Unpickler(pickle, read_storage).run();
}

}  // namespace taas
