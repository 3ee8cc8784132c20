#include "training/backend/abortable_gloo.hpp"

#include <exception>
#include <memory>
#include <string>

namespace gloo::transport::taas_pairs {

/// gloo::transport::tcp::Pair::signalExceptionExternal of the gloo inside libtorch, whose header the wheel lacks: fails
/// what waits for this pair and closes its connection. Weak: null in a libtorch without it.
__attribute__((weak)) std::exception_ptr fail(void* pair, const std::string& why) __asm__(
    "_ZN4gloo9transport3tcp4Pair23signalExceptionExternalERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");

}  // namespace gloo::transport::taas_pairs

namespace taas {
namespace {

constexpr const char* kWhy = "this rank has aborted the group";

void fail_pair(gloo::Context& context, int peer) {
  auto& pair = context.getPair(peer);
  if (pair) gloo::transport::taas_pairs::fail(pair.get(), kWhy);
}

void fail_pairs(gloo::Context& context, int rank, int size) {
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    try {
      fail_pair(context, peer);
    } catch (const std::exception&) {  // never connected: nothing is to be closed
    }
  }
}

}  // namespace

void AbortableGloo::abort() {
  if (!&gloo::transport::taas_pairs::fail) return;
  for (const auto& context : contexts_) fail_pairs(*context, getRank(), getSize());
}

}  // namespace taas
