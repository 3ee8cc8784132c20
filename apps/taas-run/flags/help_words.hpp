#pragma once

#include <string_view>

namespace taas::cli {

// What the help and the manual page both say.
constexpr std::string_view kSummary = "starts a distributed training program and keeps it running";
constexpr std::string_view kPrograms =
    "a Python script, a Python module (-m), any executable, or a program shipped with taas-run (train)";
constexpr std::string_view kSpelling =
    "Options may be spelled with - or _ and stand before PROGRAM: what follows it is the program's own. Options of "
    "torchrun have defaults in PET_<OPTION>.";
constexpr std::string_view kExamples[] = {"taas-run --gpus 8 train", "taas-run --nproc-per-node 2 train.py --lr 0.1"};

/// Words that are a whole command line, and no programs.
struct Command {
  std::string_view name;
  std::string_view help;
};
constexpr Command kDevices{"devices", "List the GPUs and cores that a program would see, and try a tensor on each"};
constexpr Command kToken{"token", "Print a new secret for TAAS_TOKEN, or for the file of --token-file"};
constexpr Command kHelp{"help", "Print this"};
constexpr Command kCommands[] = {kDevices, kToken, kHelp};

}  // namespace taas::cli
