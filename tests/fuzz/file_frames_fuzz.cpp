// What an agent may send as a frame of a file. A frame that is understood says the same once it was written and read
// again, and a name that is accepted leads nowhere but below a folder.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/folders/beneath.hpp"
#include "run/messages/file_frames.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace taas;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto frame = run::decode_file_frame(bytes);
  if (!frame) return frame.error().message.empty() ? std::abort(), 1 : 0;
  if (run::encode(*frame) != bytes) std::abort();
  const auto* offer = std::get_if<run::FileOffer>(&*frame);
  if (offer == nullptr || !is_name_below(offer->name)) return 0;
  const auto path = (std::filesystem::path("/top") / offer->name).lexically_normal().native();
  if (path.rfind("/top/", 0) != 0 || path.size() == 5) std::abort();
  return 0;
}
