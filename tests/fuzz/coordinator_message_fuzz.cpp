#include "message_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz_messages(data, size, taas::run::decode_coordinator_message);
}
