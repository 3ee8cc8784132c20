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
/// Each with what it does, in lines of 80 columns.
constexpr std::string_view kExamples[] = {
    "taas-run train.py --lr 0.1                a process for each GPU, or one",
    "taas-run --gpus 8 train.py                eight; without GPUs, on the CPU",
    "taas-run --nproc-per-node 2 -m my.module  a Python module, as with torchrun",
    "taas-run --hosts a,b --gpus 16 train.py   on two machines, over ssh",
    "taas-run --slurm --gpus 64 train.py       as a job of SLURM",
    "taas-run --gpus 8 --cpus 2 train.py       CPU machines make the batches",
    "taas-run --max-restarts 3 -t 3 train.py   after failures; output of all ranks",
    "taas-run --gpus 64 --dry-run train.py     the plan; nothing is started"};

/// Other uses, by their first word.
constexpr std::string_view kCommands[] = {
    "taas-run check [OPTIONS] [PROGRAM]        what is wrong with the nodes",
    "taas-run devices                          what there is to compute on, tried",
    "taas-run look|top [RUN]                   what ranks are at; a line for each",
    "taas-run runs [--failed]                  what was run here, and how it ended",
    "taas-run show|logs|attach [RUN]           what happened; output; that to come",
    "taas-run stop|rerun [RUN]                 end it; do the same again",
    "taas-run diff RUN [OTHER], taas-run clean what differs; remove old runs",
    "taas-run up|down|sessions                 runs that start in half a second",
    "taas-run token                            a secret for nodes that join"};

/// Their names, each the first word of a command line.
constexpr std::string_view kCommandNames[] = {"attach", "check", "clean", "devices", "diff", "down",
                                              "help",   "logs",  "look",  "rerun",   "runs", "sessions",
                                              "show",   "stop",  "token", "top",     "up"};

/// Where the rest is.
constexpr std::string_view kMoreHelp =
    "Options stand before PROGRAM, and what follows it is the program's own.\n"
    "All options: taas-run --help all, man taas-run; of a command: taas-run help runs";

}  // namespace taas::cli
