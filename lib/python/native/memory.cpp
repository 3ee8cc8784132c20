#include <malloc.h>

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
  module.def("tune_allocator", tune_allocator,
             "Makes malloc keep large blocks of this process for the next batch. False: it could not be told.");
}

}  // namespace taas::native
