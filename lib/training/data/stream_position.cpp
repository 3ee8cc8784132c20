#include "training/data/stream_position.hpp"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>

#include <stdexcept>

namespace taas {
namespace {

c10::IValue value_of(std::uint64_t number) { return static_cast<std::int64_t>(number); }

std::uint64_t number_in(const c10::impl::GenericDict& dict, const char* name) {
  auto number = dict.at(name).toInt();
  if (number < 0) throw std::invalid_argument("negative");
  return static_cast<std::uint64_t>(number);
}

}  // namespace

void StreamPosition::pass(const ShardPlace& place) {
  bool is_last = place.worker + 1 == chains.size();
  next = is_last ? ShardPlace{place.turn + 1, 0} : ShardPlace{place.turn, place.worker + 1};
}

c10::IValue to_value(const StreamPosition& position) {
  c10::impl::GenericList ended(c10::AnyType::get()), chains(c10::AnyType::get());
  for (auto worker : position.ended) ended.push_back(value_of(worker));
  for (const auto& chain : position.chains) chains.push_back(chain ? value_of(*chain) : c10::IValue());
  c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
  dict.insert("rank", value_of(position.rank));
  dict.insert("world_size", value_of(position.world_size));
  dict.insert("turn", value_of(position.next.turn));
  dict.insert("worker", value_of(position.next.worker));
  dict.insert("ended", ended);
  dict.insert("chains", chains);
  return dict;
}

StreamPosition stream_position(const c10::IValue& value) {
  auto dict = value.toGenericDict();
  StreamPosition position{.rank = number_in(dict, "rank"),
                          .world_size = number_in(dict, "world_size"),
                          .next = {.turn = number_in(dict, "turn"), .worker = number_in(dict, "worker")},
                          .ended = {},
                          .chains = {}};
  for (const c10::IValue& chain : dict.at("chains").toListRef()) {
    position.chains.push_back(chain.isNone() ? std::nullopt : std::optional(static_cast<std::uint64_t>(chain.toInt())));
  }
  for (const c10::IValue& worker : dict.at("ended").toListRef())
    position.ended.insert(static_cast<std::uint64_t>(worker.toInt()));
  if (position.chains.empty() || position.next.worker >= position.chains.size()) throw std::invalid_argument("workers");
  return position;
}

}  // namespace taas
