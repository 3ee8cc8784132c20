#include <malloc.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <tuple>
#include <vector>

#include "data/memory/background_copy.hpp"
#include "data/wire/digest.hpp"
#include "native.hpp"

namespace taas::native {

namespace nb = nanobind;

namespace {

/// A contiguous view of any object with the buffer protocol.
class ReadView {
 public:
  explicit ReadView(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  ~ReadView() { PyBuffer_Release(&view_); }
  ReadView(const ReadView&) = delete;
  ReadView& operator=(const ReadView&) = delete;
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

std::uint64_t digest(nb::handle buffer) {
  const ReadView view(buffer);
  nb::gil_scoped_release released;
  return data::digest_of(view.bytes());
}

/// Copies between objects that it keeps until it is done.
class PyCopy {
 public:
  using Addresses = std::tuple<std::uintptr_t, std::uintptr_t, std::size_t>;

  PyCopy(const std::vector<Addresses>& parts, nb::object keep) : keep_(std::move(keep)) {
    std::vector<data::BackgroundCopy::Part> meant;
    for (const auto& [to, from, bytes] : parts) {
      meant.push_back(
          {.to = reinterpret_cast<std::byte*>(to), .from = {reinterpret_cast<const std::byte*>(from), bytes}});
    }
    nb::gil_scoped_release released;
    copy_.emplace(meant);
  }
  ~PyCopy() { wait(); }
  PyCopy(const PyCopy&) = delete;
  PyCopy& operator=(const PyCopy&) = delete;

  [[nodiscard]] bool is_done() const { return copy_->is_done(); }
  void wait() {
    if (is_done()) return;
    nb::gil_scoped_release released;
    copy_->wait();
  }

 private:
  nb::object keep_;
  std::optional<data::BackgroundCopy> copy_;
};

/// By default glibc gives a large block back to the kernel when it is freed, and the next one costs a page fault for
/// each of its pages: most of what making a batch costs.
bool tune_allocator() {
  constexpr int kLargest = 1 << 30;
  return ::mallopt(M_MMAP_THRESHOLD, kLargest) == 1 && ::mallopt(M_TRIM_THRESHOLD, kLargest) == 1 &&
         ::mallopt(M_TOP_PAD, 64 << 20) == 1;
}

}  // namespace

void add_memory(nb::module_& module) {
  module.def("digest", digest, nb::arg("buffer"), "XXH3 (64 bits) of an object with the buffer protocol.");
  nb::class_<PyCopy>(module, "Copy", "Memory that is copied while the program goes on.")
      .def(nb::init<const std::vector<PyCopy::Addresses>&, nb::object>(), nb::arg("parts"), nb::arg("keep"),
           "Begins. `parts`: (address to copy to, address to copy from, bytes). `keep`: what they belong to.")
      .def_prop_ro("is_done", &PyCopy::is_done)
      .def("wait", &PyCopy::wait);
  module.def("tune_allocator", tune_allocator,
             "Makes malloc keep large blocks of this process for the next batch. False: it could not be told.");
}

}  // namespace taas::native
