#include "data/server/server.hpp"

#include <fcntl.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <mutex>

#include "native.hpp"
#include "net/secret.hpp"

namespace taas::native {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// Views of Python objects whose bytes are out. They are let go by the next call from Python: the server's threads
/// never wait for the GIL.
class Done {
 public:
  void add(std::vector<Py_buffer> views) {
    const std::lock_guard lock(mutex_);
    views_.insert(views_.end(), views.begin(), views.end());
  }
  /// With the GIL.
  void let_go() {
    std::vector<Py_buffer> views;
    {
      const std::lock_guard lock(mutex_);
      views.swap(views_);
    }
    for (auto& view : views) PyBuffer_Release(&view);
  }

 private:
  std::mutex mutex_;
  std::vector<Py_buffer> views_;
};

/// Views of the buffers of one batch.
class Views {
 public:
  explicit Views(std::shared_ptr<Done> done) : done_(std::move(done)) {}
  ~Views() { done_->add(std::move(views_)); }
  Views(const Views&) = delete;
  Views& operator=(const Views&) = delete;

  std::span<const std::byte> add(nb::handle object) {
    Py_buffer view{};
    if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
    views_.push_back(view);
    return {static_cast<const std::byte*>(view.buf), static_cast<std::size_t>(view.len)};
  }

 private:
  std::shared_ptr<Done> done_;
  std::vector<Py_buffer> views_;
};

struct PyServer {
  std::shared_ptr<Done> done = std::make_shared<Done>();
  std::unique_ptr<data::Server> server;

  ~PyServer() {
    {
      nb::gil_scoped_release released;
      server.reset();
    }
    done->let_go();
  }
};

PyServer* make_server(std::string run_id, const std::string& key, const std::string& encryption, int tcp_fd,
                      int unix_fd) {
  auto parsed = net::parse_key(key);
  if (!parsed) throw nb::value_error(parsed.error().message.c_str());
  if (encryption != "tls" && encryption != "plain") throw nb::value_error("encryption is 'tls' or 'plain'");
  open_log("data-worker-" + place("TAAS_DATA_WORKER"));
  auto self = std::make_unique<PyServer>();
  self->server = std::make_unique<data::Server>(
      data::ServerOptions{.run_id = std::move(run_id),
                          .key = *parsed,
                          .encryption = encryption == "tls" ? data::Encryption::kTls : data::Encryption::kPlain,
                          .tcp_listener = Fd(tcp_fd),
                          .unix_listener = Fd(unix_fd)});
  return self.release();
}

std::optional<data::Job> take(PyServer& self, std::optional<double> timeout) {
  self.done->let_go();
  return wait_in_slices(timeout, [&](Duration patience) { return self.server->take(patience); });
}

void put(PyServer& self, const data::Job& job, const nb::sequence& buffers) {
  self.done->let_go();
  auto views = std::make_shared<Views>(self.done);
  std::vector<std::span<const std::byte>> spans;
  for (const nb::handle buffer : buffers) spans.push_back(views->add(buffer));
  nb::gil_scoped_release released;
  self.server->put(job, spans, std::move(views));
}

void raise(PyServer& self, const data::Job& job, std::string type, std::string text, const nb::bytes& pickled) {
  const data::Raised what{std::move(type), std::move(text), std::string(pickled.c_str(), pickled.size()), -1};
  nb::gil_scoped_release released;
  self.server->raise(job, what);
}

nb::object definition(const PyServer& self, const std::string& digest) {
  const auto found = self.server->definition(digest);
  if (!found) return nb::none();
  const auto& memory = found->memory;
  const int fd = memory.descriptor ? ::fcntl(memory.descriptor.get(), F_DUPFD_CLOEXEC, 0) : -1;
  if (memory.descriptor && fd < 0) throw std::runtime_error("no descriptor is left for the dataset's memory");
  return nb::make_tuple(nb::bytes(found->bytes.data(), found->bytes.size()), fd, memory.bytes);
}

}  // namespace

void add_server(nb::module_& module) {
  using Release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<data::Job>(module, "Job", "One task of one client, to be answered exactly once.")
      .def_ro("client", &data::Job::client)
      .def_ro("stream", &data::Job::stream)
      .def_ro("number", &data::Job::number)
      .def_ro("attempt", &data::Job::attempt)
      .def_ro("digest", &data::Job::digest)
      .def_ro("has_ended_a_worker", &data::Job::has_ended_a_worker, "A worker that had it was lost.")
      .def_prop_ro("payload",
                   [](const data::Job& self) { return nb::bytes(self.payload.data(), self.payload.size()); });
  nb::class_<PyServer>(module, "Server", "A data worker's end. Takes the listeners over; -1: none.")
      .def(nb::new_(&make_server), "run_id"_a, "key"_a, "encryption"_a = "tls", "tcp_fd"_a = -1, "unix_fd"_a = -1)
      .def("take", &take, "timeout"_a = nb::none(), "The next Job; None when `timeout` (seconds) is over first.")
      .def("definition", &definition, "digest"_a,
           "What the loader is made of, or None: its bytes, a descriptor of memory that belongs to it (the caller "
           "closes it; "
           "-1: none), and how many bytes that is.")
      .def(
          "loaded", [](PyServer& self, const std::string& digest) { self.server->loaded(digest); }, "digest"_a,
          "The definition is not needed any more: jobs may come as before.")
      .def(
          "unloaded", [](PyServer& self, const std::string& digest) { self.server->unloaded(digest); }, "digest"_a,
          "It is needed for the next job: a client is asked for it again.")
      .def("put", &put, "job"_a, "buffers"_a,
           "Answers with a batch. `buffers` are objects with the buffer protocol (contiguous); each begins at the next "
           "multiple of 64 in the payload. They are kept until they are out: do not change them after this.")
      .def("raise_", &raise, "job"_a, "type"_a, "text"_a, "pickled"_a = nb::bytes("", 0))
      .def(
          "give_back",
          [](PyServer& self, const data::Job& job, std::string why) { self.server->give_back(job, std::move(why)); },
          "job"_a, "why"_a, Release(), "Somebody else may try.")
      .def(
          "take_remarks", [](PyServer& self) { return self.server->take_remarks(); }, Release());
}

}  // namespace taas::native
