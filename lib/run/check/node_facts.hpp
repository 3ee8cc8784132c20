#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace taas::run {

// What a node says of itself before ranks are started there. Texts are empty where a node has no such thing; amounts
// are negative where it does not say, or has no limit.

/// What ranks will run, as it is found on the node.
struct ProgramFacts {
  std::string problem;      ///< why it cannot be run there
  std::string name;         ///< as the user wrote it
  std::string digest;       ///< SHA-256 of the file, where it is one
  std::string interpreter;  ///< of a Python program
  std::string python;       ///< its version, "3.11.2"
  std::string python_problem;
  std::string torch;       ///< "2.9.1+cu128"
  std::string torch_cuda;  ///< "12.8"; empty: built without
  std::string nccl;        ///< of the package that torch brings, "2.27.5"
};

/// A GPU and who holds memory of it.
struct HeldGpu {
  std::string gpu;
  std::string holder;  ///< "pid 811 (jupyter), 60.1 GiB"
};

/// A GPU that fails, or has failed.
struct FailingGpu {
  std::string gpu;
  std::string problem;      ///< "has fallen off the bus"
  bool is_useless = false;  ///< ranks would fail there
};

struct GpuFacts {
  std::string problem;  ///< why none is visible, although the machine has some and nobody hid them
  std::string driver;   ///< "550.54.14"
  int visible = 0;
  int on_bus = 0;        ///< of NVIDIA's, to be used by this machine
  int device_files = 0;  ///< /dev/nvidia0, …
  std::vector<HeldGpu> held;
  std::vector<FailingGpu> failing;
};

struct LimitFacts {
  std::int64_t open_files = -1;  ///< the soft one, which ranks keep
  std::int64_t open_files_hard = -1;
  std::int64_t locked_bytes = -1;    ///< the hard one, up to which ranks' is raised
  std::int64_t processes = -1;       ///< likewise; of this user, threads too
  std::int64_t processes_left = -1;  ///< that the control group has room for
  bool privileged = false;           ///< limits of processes do not hold for it
  bool has_rdma = false;             ///< there is an adapter that needs locked memory (InfiniBand, RoCE, EFA)
};

/// A place of the file system.
struct FolderFacts {
  std::string path;
  std::string problem;  ///< why nothing can be written there
  std::int64_t total_bytes = -1;
  std::int64_t free_bytes = -1;
  double bytes_per_second = -1;  ///< of a trial that was written through to the disk
};

struct NetworkFacts {
  std::vector<std::string> interfaces;           ///< that are up
  std::vector<std::string> addresses;            ///< its own, numeric, loopback left out
  std::map<std::string, std::string> variables;  ///< NCCL_SOCKET_IFNAME and others that name interfaces
  std::vector<std::string> name_means;           ///< the addresses that its own name stands for there
  std::string name_problem;                      ///< why the name cannot be looked up
};

struct NodeFacts {
  std::string machine;  ///< "x86_64"
  std::string kernel;
  std::string libc;
  ProgramFacts program;
  GpuFacts gpus;
  LimitFacts limits;
  FolderFacts shared_memory;  ///< /dev/shm
  FolderFacts output;         ///< --output
  NetworkFacts network;
  std::int64_t memory_bytes = -1;     ///< that programs may still take
  int ranks = 0;                      ///< that will be there at most
  std::vector<std::string> refusals;  ///< why the node would not take part
  std::int64_t wall_ns = 0;           ///< its clock, since 1970
};

// clang-format off
BOOST_DESCRIBE_STRUCT(ProgramFacts, (), (problem, name, digest, interpreter, python, python_problem, torch, torch_cuda, nccl))
BOOST_DESCRIBE_STRUCT(HeldGpu, (), (gpu, holder))
BOOST_DESCRIBE_STRUCT(FailingGpu, (), (gpu, problem, is_useless))
BOOST_DESCRIBE_STRUCT(GpuFacts, (), (problem, driver, visible, on_bus, device_files, held, failing))
BOOST_DESCRIBE_STRUCT(LimitFacts, (), (open_files, open_files_hard, locked_bytes, processes,
                                       processes_left, privileged, has_rdma))
BOOST_DESCRIBE_STRUCT(FolderFacts, (), (path, problem, total_bytes, free_bytes, bytes_per_second))
BOOST_DESCRIBE_STRUCT(NetworkFacts, (), (interfaces, addresses, variables, name_means, name_problem))
BOOST_DESCRIBE_STRUCT(NodeFacts, (), (machine, kernel, libc, program, gpus, limits, shared_memory, output, network,
                                      memory_bytes, ranks, refusals, wall_ns))
// clang-format on

}  // namespace taas::run
