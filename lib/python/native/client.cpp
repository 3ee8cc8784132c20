#include "data/client/client.hpp"

#include <fcntl.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "native.hpp"
#include "net/secret.hpp"

namespace taas::native {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// The payload of a batch for Python: writable bytes. Whatever holds a view of it keeps its memory.
struct Payload {
  data::Batch batch;
};

int get_buffer(PyObject* object, Py_buffer* view, int flags) {
  const auto bytes = nb::inst_ptr<Payload>(object)->batch.payload;
  static std::byte nothing;
  return PyBuffer_FillInfo(view, object, bytes.empty() ? &nothing : bytes.data(), static_cast<Py_ssize_t>(bytes.size()),
                           0, flags);
}

PyType_Slot payload_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

struct PyBatch {
  nb::object payload;
  const data::Batch& batch() const { return nb::inst_ptr<Payload>(payload)->batch; }
};

nb::object to_python(data::Outcome outcome) {
  if (auto* batch = std::get_if<data::Batch>(&outcome)) return nb::cast(PyBatch{nb::cast(Payload{std::move(*batch)})});
  return std::visit([](auto& other) { return nb::cast(std::move(other)); }, outcome);
}

template <class Enum>
Enum chosen(const std::string& text, std::initializer_list<std::pair<const char*, Enum>> choices) {
  for (const auto& [name, value] : choices) {
    if (text == name) return value;
  }
  throw nb::value_error(("'" + text + "' is not one of the choices").c_str());
}

std::string parse_key(const std::string& hexadecimal) {
  auto key = net::parse_key(hexadecimal);
  if (!key) throw nb::value_error(key.error().message.c_str());
  return *key;
}

/// Refuses use in a forked child.
data::Client& here(data::Client& client) {
  if (client.is_forked()) {
    throw std::runtime_error(
        "a data client cannot be used in a forked process: its threads are in the parent (use DataLoader workers or "
        "subprocesses that are started with spawn)");
  }
  return client;
}

data::Client* make_client(std::string run_id, const std::string& key, const std::string& encryption,
                          const std::string& compression, std::size_t budget_bytes) {
  using data::Compression;
  using data::Encryption;
  open_log("rank-" + place("RANK") + "-data");
  return new data::Client(
      {.run_id = std::move(run_id),
       .key = parse_key(key),
       .encryption = chosen<Encryption>(encryption, {{"tls", Encryption::kTls}, {"plain", Encryption::kPlain}}),
       .compression = chosen<Compression>(
           compression, {{"none", Compression::kNone}, {"lz4", Compression::kLz4}, {"zstd", Compression::kZstd}}),
       .budget_bytes = budget_bytes,
       .schedule = {}});
}

data::StreamId open(data::Client& client, std::string digest, const nb::bytes& definition, int memory_fd,
                    std::size_t memory_bytes) {
  data::Definition meant{.digest = std::move(digest),
                         .bytes = std::make_shared<const std::string>(definition.c_str(), definition.size())};
  if (memory_fd >= 0) {
    auto memory = data::SealedMemory::of(Fd(::fcntl(memory_fd, F_DUPFD_CLOEXEC, 0)), memory_bytes);
    if (!memory) throw std::runtime_error(memory.error().message);
    meant.memory = std::make_shared<const data::SealedMemory>(std::move(*memory));
  }
  return here(client).open(std::move(meant));
}

void submit(data::Client& client, data::StreamId stream, const nb::bytes& payload, int preferred, bool pinned) {
  std::string bytes(payload.c_str(), payload.size());
  nb::gil_scoped_release released;
  here(client).submit(stream, std::move(bytes), preferred, pinned);
}

nb::object next(data::Client& client, data::StreamId stream, std::optional<double> timeout) {
  here(client);
  auto outcome = wait_in_slices(timeout, [&](Duration patience) { return client.next(stream, patience); });
  return outcome ? to_python(std::move(*outcome)) : nb::none();
}

void add_deliveries(nb::module_& module) {
  nb::class_<Payload>(module, "Payload", nb::type_slots(payload_slots),
                      "A batch's memory (buffer protocol, writable).");
  nb::class_<PyBatch>(module, "Batch", "A batch as it came.")
      .def_prop_ro("payload", [](const PyBatch& self) { return self.payload; })
      .def_prop_ro(
          "view", [](const PyBatch& self) { return nb::steal(PyMemoryView_FromObject(self.payload.ptr())); },
          "Its bytes, writable. Keeps the memory: so does a tensor that was made from it.")
      .def_prop_ro(
          "digest", [](const PyBatch& self) { return self.batch().digest; }, "XXH3 of the payload.")
      .def_prop_ro("worker", [](const PyBatch& self) { return self.batch().worker; });
  nb::class_<data::Raised>(module, "Raised", "The dataset's code raised.")
      .def_ro("type", &data::Raised::type)
      .def_ro("text", &data::Raised::text)
      .def_prop_ro("pickled",
                   [](const data::Raised& self) { return nb::bytes(self.pickled.data(), self.pickled.size()); })
      .def_ro("worker", &data::Raised::worker);
  nb::class_<data::Undeliverable>(module, "Undeliverable", "No batch will come.")
      .def_ro("message", &data::Undeliverable::message);
}

void add_addresses(nb::module_& module) {
  nb::class_<data::WorkerAddress>(module, "WorkerAddress", "Where a data worker listens.")
      .def(
          "__init__",
          [](data::WorkerAddress* self, std::string name, std::string address, std::uint16_t port,
             std::string unix_path) {
            new (self) data::WorkerAddress{std::move(name), std::move(address), port, std::move(unix_path)};
          },
          "name"_a, "address"_a = "", "port"_a = 0, "unix_path"_a = "")
      .def_ro("name", &data::WorkerAddress::name)
      .def_ro("address", &data::WorkerAddress::address)
      .def_ro("port", &data::WorkerAddress::port)
      .def_ro("unix_path", &data::WorkerAddress::unix_path);
  nb::class_<data::Statistics>(module, "Statistics")
      .def_ro("batches", &data::Statistics::batches)
      .def_ro("bytes", &data::Statistics::bytes)
      .def_ro("hedged", &data::Statistics::hedged)
      .def_ro("late", &data::Statistics::late)
      .def_ro("waited_seconds", &data::Statistics::waited_seconds)
      .def_ro("waiting", &data::Statistics::waiting)
      .def_ro("workers_up", &data::Statistics::workers_up)
      .def_ro("buffered_bytes", &data::Statistics::buffered_bytes);
}

}  // namespace

void add_client(nb::module_& module) {
  add_deliveries(module);
  add_addresses(module);
  using Release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<data::Client>(module, "Client", "A rank's end of data delivery. Not for forked children.")
      .def(nb::new_(&make_client), "run_id"_a, "key"_a, "encryption"_a = "tls", "compression"_a = "none",
           "budget_bytes"_a = std::size_t{1} << 30)
      .def(
          "set_workers",
          [](data::Client& self, std::vector<data::WorkerAddress> workers) {
            here(self).set_workers(std::move(workers));
          },
          "workers"_a, Release(), "All data workers; places in the list stay.")
      .def("open", &open, "digest"_a, "definition"_a, "memory_fd"_a = -1, "memory_bytes"_a = 0,
           "A new stream; digest: 32 hexadecimal digits of the definition. `memory_fd` is a memfd sealed against "
           "writing, "
           "which goes along; the caller keeps the descriptor.")
      .def("submit", &submit, "stream"_a, "payload"_a, "preferred"_a = -1, "pinned"_a = false)
      .def("next", &next, "stream"_a, "timeout"_a = nb::none(),
           "The next Batch, Raised or Undeliverable; None when `timeout` (seconds) is over first.")
      .def(
          "close", [](data::Client& self, data::StreamId stream) { here(self).close(stream); }, "stream"_a, Release())
      .def(
          "statistics",
          [](const data::Client& self, std::optional<data::StreamId> stream) {
            return stream ? self.statistics(*stream) : self.statistics();
          },
          "stream"_a = nb::none(), Release())
      .def("take_remarks", &data::Client::take_remarks, Release());
}

}  // namespace taas::native
