#include "plan/options/exclusions.hpp"

#include "catch.hpp"

namespace exclusions_test {

using namespace taas;
using namespace taas::plan;

namespace {

std::string message_of(const Result<>& checked) { return checked ? "" : checked.error().message; }

}  // namespace

TEST_CASE("flags that exclude each other are named together") {
  Options hosts, standalone, slurm;
  hosts.nodes.hosts = "a,b";
  standalone.rendezvous.standalone = true;
  slurm.slurm.submit = true;
  CHECK(check_exclusions(hosts).has_value());
  CHECK(check_exclusions(standalone).has_value());
  CHECK(check_exclusions(slurm).has_value());

  auto both = hosts;
  both.nodes.hostfile = "list";
  CHECK(message_of(check_exclusions(both)) ==
        "--hosts a,b and --hostfile list exclude each other: one list of hosts is enough");
  both = hosts;
  both.rendezvous.standalone = true;
  CHECK(message_of(check_exclusions(both)) ==
        "--standalone and --hosts a,b exclude each other: the one is for this machine alone");
  both = slurm;
  both.rendezvous.standalone = true;
  CHECK(message_of(check_exclusions(both)) ==
        "--standalone and --slurm exclude each other: the one is for this machine alone");
  both = hosts;
  both.slurm.submit = true;
  CHECK(message_of(check_exclusions(both)) == "--slurm and --hosts a,b exclude each other: SLURM chooses the nodes");
  both = hosts;
  both.rendezvous.node_rank = 1;
  CHECK(message_of(check_exclusions(both)) ==
        "--hosts a,b and --node-rank 1 exclude each other: the nodes of a list do not have to find each other");
  both = slurm;
  both.rendezvous.endpoint = "h:1";
  CHECK(message_of(check_exclusions(both)) ==
        "--slurm and --rdzv-endpoint h:1 exclude each other: SLURM's nodes do not have to find each other");
  both = standalone;  // torchrun's word: ignored
  both.rendezvous.master_addr = "h";
  CHECK(check_exclusions(both).has_value());
}

TEST_CASE("an exception from protection needs some") {
  Options options;
  options.output.unprotected = {"data/cache"};
  CHECK(message_of(check_exclusions(options)) ==
        "--protect-except data/cache: only with --protect, which names what is protected");
  options.output.protected_directories = {"data"};
  CHECK(check_exclusions(options).has_value());
}

TEST_CASE("flags of a job need one") {
  Options options;
  CHECK(check_job_flags(options, false).has_value());
  options.slurm.partition = "gpu";
  CHECK(message_of(check_job_flags(options, false)) == "--partition gpu: only with --slurm, which submits a job");
  CHECK(check_job_flags(options, true).has_value());
  options.slurm.submit = true;
  CHECK(check_job_flags(options, false).has_value());
  options.slurm = {};
  options.slurm.options = {"qos=high"};
  CHECK(message_of(check_job_flags(options, false)) ==
        "--slurm-option qos=high: only with --slurm, which submits a job");
  options.slurm = {};
  options.slurm.detach = true;
  CHECK(message_of(check_job_flags(options, false)) == "--detach: only with --slurm, which submits a job");
  options.slurm = {};
  options.slurm.requeue = true;
  CHECK(message_of(check_job_flags(options, false)) == "--requeue: only in a job of SLURM");
  CHECK(check_job_flags(options, true).has_value());
  options.slurm.submit = true;
  CHECK(message_of(check_job_flags(options, false)) ==
        "--slurm --requeue: SLURM puts only batch jobs back into the queue; --detach submits one");
  CHECK(check_job_flags(options, true).has_value());  // what sbatch started, with the same words
  options.slurm.detach = true;
  CHECK(check_job_flags(options, false).has_value());
}

TEST_CASE("a staged submission needs what it prepares, and on which machines") {
  Options options;
  options.slurm.data_time = "10";
  CHECK(message_of(check_exclusions(options)) ==
        "--data-time 10: only with --slurm-staged, which gives the CPU machines a job of their own");
  options.slurm.staged = options.slurm.submit = true;
  CHECK(message_of(check_exclusions(options)) == "--slurm-staged: --cpus N has to say how many machines prepare");
  options.data.cpus = 2;
  CHECK(message_of(check_exclusions(options)) == "--slurm-staged: --loader NAME has to say what is prepared");
  options.data.loader = "data:train";
  CHECK(check_exclusions(options).has_value());
  options.slurm.requeue = true;
  CHECK(message_of(check_exclusions(options)) ==
        "--slurm-staged and --requeue exclude each other: what is prepared would be gone");
  options.slurm.requeue = false;
  options.data.hosts = "c0";
  CHECK(message_of(check_exclusions(options)) ==
        "--slurm-staged and --data-hosts c0 exclude each other: SLURM chooses the CPU machines");
  options.slurm.submit = false;
  CHECK(message_of(check_job_flags(options, false)) == "--slurm-staged: only with --slurm, which submits a job");
}

}  // namespace exclusions_test
