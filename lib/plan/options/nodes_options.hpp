#pragma once

#include <boost/describe/class.hpp>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

namespace taas::plan {

/// Which machines take part, how they are reached, and how long they are waited for.
struct NodesOptions {
  std::optional<std::string> hosts;     ///< --hosts, as written: make_plan() reads it
  std::optional<std::string> hostfile;  ///< --hostfile: the path, for messages
  std::string hostfile_text;            ///< what is in it
  int spares = 0;                       ///< nodes that stand by for a lost one
  std::string interface;                ///< --interface; empty: the addresses that answer are found out
  std::optional<std::string> token_file;
  std::chrono::milliseconds node_timeout{30000};   ///< a node that is silent for so long is given up
  std::chrono::milliseconds join_timeout{600000};  ///< for enough nodes to be there
  std::chrono::milliseconds elastic_wait{30000};   ///< for more than the least, while hosts are missing
  std::optional<bool> is_host;                     ///< --rdzv-conf is_host: this node coordinates
  std::string ssh_command = "ssh";                 ///< --ssh: a command line of its own, split at spaces
  std::optional<std::string> remote_taas_run;      ///< absent: the path of this one
};

/// Jobs of SLURM: how one is submitted, and how it reacts to being ended.
struct SlurmOptions {
  bool submit = false;  ///< --slurm
  bool detach = false;  ///< print the job's id and leave
  std::optional<std::string> partition;
  std::optional<std::string> data_partition;  ///< of the CPU machines; absent: the same
  std::optional<std::string> account;
  std::optional<std::string> time;
  std::optional<std::string> data_time;  ///< of the CPU machines' job; absent: the partition's
  std::optional<std::string> gres;
  std::vector<std::string> options;  ///< --slurm-option KEY=VALUE, without dashes in front
  int preempt_signal = SIGUSR2;      ///< means: the job ends soon, write a checkpoint
  bool requeue = false;
  bool staged = false;                  ///< --slurm-staged: the GPU nodes' job is held until --loader is prepared
  std::optional<std::string> held_job;  ///< --held-job: that job, where this process was submitted to prepare for it
  std::string staged_node;              ///< --as-staged-node: this process is a task of one of both jobs
};

// clang-format off
BOOST_DESCRIBE_STRUCT(NodesOptions, (), (hosts, hostfile, hostfile_text, spares, interface, token_file, node_timeout,
                                         join_timeout, elastic_wait, is_host, ssh_command, remote_taas_run))
BOOST_DESCRIBE_STRUCT(SlurmOptions, (), (submit, detach, partition, data_partition, account, time, data_time, gres, options,
                                         preempt_signal, requeue, staged, held_job, staged_node))
// clang-format on

}  // namespace taas::plan
