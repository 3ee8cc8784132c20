#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace taas::cli {

/// Values as users write them. The errors say what would have been right, without the flag's name.
Result<int> read_integer(std::string_view text, int least, int most);
/// true/false, yes/no, on/off in any case, 1/0; any other number is true, as in torchrun's PET_* variables.
Result<bool> read_switch(std::string_view text);
/// Seconds, with a fraction if wanted.
Result<std::chrono::milliseconds> read_seconds(std::string_view text);
/// "0,1,2"; an empty text is an empty list.
Result<std::vector<int>> read_integers(std::string_view text);
/// "SIGTERM,SIGUSR1": names of signals that a process can handle. Names that no signal of this system has are only
/// noted, as under torchrun: a command line may be meant for several systems.
struct SignalList {
  std::vector<int> known;
  std::vector<std::string> unknown;
};
Result<SignalList> read_signals(std::string_view text);

/// A whole number from 1, of any size.
Result<std::int64_t> read_count(std::string_view text);
/// Bytes: "1000000", "512k", "1.5G"; the suffixes are powers of 1024.
Result<std::int64_t> read_bytes(std::string_view text);

/// "USR2" or "SIGUSR2".
Result<int> read_signal(std::string_view text);

/// "host1:8,host2": what --hosts takes.
Result<> check_hosts(std::string_view text);

}  // namespace taas::cli
