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

}  // namespace taas::cli
