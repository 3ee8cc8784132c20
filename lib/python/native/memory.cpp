#include <malloc.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <vector>

#include "data/memory/background_copies.hpp"
#include "data/wire/digest.hpp"
#include "native.hpp"

namespace taas::native {

namespace nb = nanobind;
using namespace nb::literals;

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

/// By default glibc gives a large block back to the kernel when it is freed, and the next one costs a page fault for
/// each of its pages: most of what making a batch costs.
bool tune_allocator() {
  constexpr int kLargest = 1 << 30;
  return ::mallopt(M_MMAP_THRESHOLD, kLargest) == 1 && ::mallopt(M_TRIM_THRESHOLD, kLargest) == 1 &&
         ::mallopt(M_TOP_PAD, 64 << 20) == 1;
}

using Addresses = std::tuple<std::uintptr_t, std::uintptr_t, std::size_t>;

/// A copy with what owns its memory, which is let go when it is done.
class KeptCopy {
 public:
  KeptCopy(const std::vector<Addresses>& parts, nb::object owners) : owners_(std::move(owners)) {
    std::vector<data::CopyPart> memory;
    for (const auto& [to, from, bytes] : parts) {
      memory.push_back({reinterpret_cast<std::byte*>(to), {reinterpret_cast<const std::byte*>(from), bytes}});
    }
    nb::gil_scoped_release released;
    copy_.emplace(std::move(memory));
  }
  ~KeptCopy() {
    nb::gil_scoped_release released;
    copy_.reset();
  }
  KeptCopy(const KeptCopy&) = delete;
  KeptCopy& operator=(const KeptCopy&) = delete;

  void wait() {
    {
      nb::gil_scoped_release released;
      copy_->wait();
    }
    owners_.reset();
  }

 private:
  nb::object owners_;
  std::optional<data::BackgroundCopy> copy_;
};

}  // namespace

void add_memory(nb::module_& module) {
  module.def("digest", digest, nb::arg("buffer"), "XXH3 (64 bits) of an object with the buffer protocol.");
  nb::class_<KeptCopy>(module, "Copy", "Memory that is copied by other threads.")
      .def(nb::init<const std::vector<Addresses>&, nb::object>(), "parts"_a, "owners"_a,
           "`parts` are (to, from, bytes), with addresses. `owners` is kept until the copy is done.")
      .def("wait", &KeptCopy::wait, "Returns when it is done.");
  module.def("tune_allocator", tune_allocator,
             "Makes malloc keep large blocks of this process for the next batch. False: it could not be told.");
}

}  // namespace taas::native
