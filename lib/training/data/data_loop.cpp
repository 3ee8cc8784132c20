#include "training/data/data_loop.hpp"

#include <algorithm>
#include <utility>

#include "taas/error.hpp"
#include "training/data/data_pinning.hpp"
#include "training/making/data_batch.hpp"
#include "training/making/data_task.hpp"
#include "training/making/random_state.hpp"

namespace taas {
namespace {

using namespace std::chrono_literals;

/// How long ranks wait for each other, as in a collective.
constexpr std::chrono::milliseconds kAgreementPatience = 10min;

data::Definition definition_of(const std::string& text) {
  auto half = [](std::uint64_t word) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string digits;
    for (int shift = 60; shift >= 0; shift -= 4) digits += kDigits[(word >> shift) & 15];
    return digits;
  };
  return {.digest = half(digest_of_text(text)) + half(digest_of_text("loader " + text)),
          .bytes = std::make_shared<const std::string>(text)};
}

}  // namespace

Batches::Loop::~Loop() {
  if (!loader) return;  // something was wrong before it could begin
  if (client() != nullptr) {
    client()->close(stream);
  } else {
    loader->maker->forget();
  }
}

void Batches::Loop::begin(std::shared_ptr<DataLoader::State> of) {
  loader = std::move(of);
  if (auto* remote = client()) stream = remote->open(definition_of(loader->maker->description()));
  may_be_prepared = client() != nullptr && loader->run->prepares(loader->name) && !loader->looped;
  loader->looped = true;
  const bool skips = loader->run && loader->run->plan().skips_errors;
  if (skips && place.world_size > 1 && loader->options.agree_on_skips) {
    agreement.emplace(connect_loader_store(loader->name, loader->loops++, kAgreementPatience), place.rank,
                      place.world_size, kAgreementPatience);
  }
  fill();
}

void Batches::Loop::fill() {
  std::size_t window = client() != nullptr ? loader->run->window(largest) : 1;
  while (asked.size() < window) {
    auto task = order->next();
    if (!task) return;
    if (client() != nullptr) submit(*task);
    asked.push_back(std::move(*task));
  }
}

/// A shard has a worker that keeps its place, and what may be prepared has one that prepared it.
void Batches::Loop::submit(const OrderedTask& task) {
  bool is_at_home = task.shard || may_be_prepared;
  auto preferred = is_at_home ? loader->run->plan().worker_at(task.home) : data::WorkerIndex{-1};
  client()->submit(stream, task.bytes, preferred, task.shard.has_value());
}

std::optional<Tensors> Batches::Loop::next() {
  while (!done) {
    fill();
    if (asked.empty() || has_enough()) {
      finish();
      break;
    }
    auto task = std::move(asked.front());
    asked.pop_front();
    ++loader->epoch.taken;
    if (task.shard) loader->epoch.stream->pass(*task.shard);
    bool lacks = false;
    auto taken = take(task, lacks);
    if (!taken && !lacks) continue;
    if (is_left_out(lacks)) continue;
    return count(task, std::move(*taken));
  }
  return std::nullopt;
}

bool Batches::Loop::is_left_out(bool lacks) {
  if (!agreement) return lacks;
  const auto ranks = agreement->lacking(lacks);
  if (ranks.empty()) return false;
  if (!lacks)
    remark_on_data(batch_name() + " is left out, as rank " + std::to_string(ranks.front()) + " lacks its own");
  return true;
}

std::string Batches::Loop::batch_name() const {
  return loader->name + ": batch " + std::to_string(loader->epoch.taken - 1) + " of epoch " +
         std::to_string(loader->epoch.number);
}

std::optional<Batches::Loop::Taken> Batches::Loop::take(const OrderedTask& task, bool& lacks) {
  auto began = steady_now();
  std::optional<Taken> taken;
  try {
    taken = client() != nullptr ? receive(task) : make(task);
  } catch (const DataError& error) {
    if (!loader->run || !loader->run->plan().skips_errors) throw;
    remark_on_data(batch_name() + " is left out: " + error.what());
    lacks = true;
    return std::nullopt;
  }
  loader->totals.waited += seconds(steady_now() - began);
  if (!taken->head) return taken;
  follow_chain(task, *taken);
  if (!taken->head->is_end()) return taken;
  end_shard(task);
  return std::nullopt;
}

Batches::Loop::Taken Batches::Loop::make(const OrderedTask& task) {
  const UntouchedState untouched;
  auto fresh = loader->maker->make(task.bytes);
  auto made = made_batch({fresh.tensors});
  auto payload = payload_digest(made);
  auto bytes = made.size();
  return {staging.moved(std::move(fresh.tensors)), payload, std::move(made.description), bytes, fresh.head};
}

DataStaging::Staged Batches::Loop::wait_for_next() {
  constexpr Duration kPatience = 100ms;
  const auto& options = loader->options;
  auto source = [this](Duration patience) { return client()->next(stream, patience); };
  for (;;) {
    loader->run->tend();
    report();
    if (options.pin_memory || !options.device.is_cpu()) pin_memory_of(*client());
    if (auto staged = staging.next(source, asked.size() + 1, kPatience)) return std::move(*staged);
  }
}

Batches::Loop::Taken Batches::Loop::receive(const OrderedTask& task) {
  auto staged = wait_for_next();
  auto* delivery = &staged.delivery;
  if (auto* batch = std::get_if<data::Batch>(delivery)) {
    largest = std::max({largest, batch->payload.size(), std::size_t{1}});
    auto [head, description] = split_head(*batch->description);
    return {staging.tensors_of(staged), batch->digest, std::string(description), batch->payload.size(), head};
  }
  if (auto* raised = std::get_if<data::Raised>(delivery)) {
    throw DataError(raised->text + " (" + loader->run->worker_name(raised->worker) + ")");
  }
  if (task.shard) loader->epoch.stream->chains.at(task.shard->worker).reset();  // it was made, and has not come
  auto* failed = std::get_if<data::Undeliverable>(delivery);
  throw DataError("a batch of '" + loader->name + "' cannot be made: " + (failed ? failed->message : "it has no data"));
}

/// What is asked for ahead of the end is no batch.
void Batches::Loop::end_shard(const OrderedTask& task) {
  --loader->epoch.taken;
  loader->epoch.stream->ended.insert(task.shard->worker);
  order->ended(task);
}

void Batches::Loop::follow_chain(const OrderedTask& task, const Taken& taken) {
  auto& chain = loader->epoch.stream->chains.at(task.shard->worker);
  auto before = taken.head->before;
  bool follows = !chain || *chain == before;
  if (!taken.head->is_end()) chain = chain_digest(before, taken.payload, taken.description);
  if (follows) return;
  throw DataError("the stream of '" + loader->name +
                  "' gives other examples when it is read again, so it cannot go on where a data worker died, or "
                  "from a saved state: let examples() begin its pass from what the shard says, and draw random "
                  "numbers from torch's default generator");
}

Tensors Batches::Loop::count(const OrderedTask& task, Taken taken) {
  auto& totals = loader->totals;
  totals.samples += taken.head ? taken.head->examples : task.examples;
  totals.bytes += taken.bytes;
  ++totals.batches;
  loader->epoch.digest = chain_digest(loader->epoch.digest, taken.payload, taken.description);
  report();
  bool to_pin = loader->options.pin_memory && loader->options.device.is_cpu();
  return to_pin ? pinned(std::move(taken.tensors)) : std::move(taken.tensors);
}

bool Batches::Loop::has_enough() const {
  auto wanted = loader->run ? loader->run->plan().samples_wanted() : 0;
  return wanted > 0 && loader->totals.samples >= wanted;
}

void Batches::Loop::finish() {
  done = true;
  if (agreement) agreement->end();
  if (has_enough()) {
    remark_on_data(loader->name + ": " + std::to_string(loader->run->plan().samples_wanted()) +
                   " samples were taken, as asked for with --units: the loop ends");
  }
  report();
  auto& epoch = loader->epoch;
  epoch = {.number = epoch.number + 1, .taken = 0, .digest = epoch.digest, .order = {}};
  loader->begun = false;
}

void Batches::Loop::report() {
  auto now = steady_now();
  if (!done && now - reported < 1s) return;
  reported = now;
  auto& totals = loader->totals;
  totals.seconds += seconds(now - std::exchange(since, now));
  totals.done = done;
  totals.rank = static_cast<int>(place.rank);
  if (auto* remote = client()) {
    auto statistics = remote->statistics(stream);
    totals.buffered = statistics.waiting;
    totals.workers = statistics.workers_up;
    totals.hedged = statistics.hedged;
  }
  report_data(totals);
}

Batches::Batches(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
Batches::Batches(Batches&&) noexcept = default;
Batches& Batches::operator=(Batches&&) noexcept = default;
Batches::~Batches() = default;

std::optional<Tensors> Batches::next() { return loop_->next(); }

}  // namespace taas
