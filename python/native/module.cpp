#include "native.hpp"

NB_MODULE(_native, module) {
  module.doc() = "The native half of data delivery: receiving batches (Client), sending them (Server), memory.";
  taas::native::add_client(module);
  taas::native::add_server(module);
  taas::native::add_memory(module);
}
