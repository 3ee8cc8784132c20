#include "native.hpp"

NB_MODULE(_native, module) {
  module.doc() = "The native half of data delivery: receiving batches (Client), sending them (Server), memory.";
  // Batches that a program still holds at its end are no leak of ours.
  nanobind::set_leak_warnings(false);
  taas::native::add_client(module);
  taas::native::add_server(module);
  taas::native::add_memory(module);
}
