#include "frameworks/ray_train.hpp"

#include <fmt/format.h>

#include "base/environment/environment.hpp"
#include "plan/program/python_command.hpp"
#include "plan/program/python_sources.hpp"

namespace taas::cli {

std::string note_on_ray_train(const plan::ResolvedProgram& program, const plan::Machine& machine, int world_size) {
  if (world_size < 2 || value_of(machine.environment, "TAAS_HINTS") == "0") return {};
  auto command = plan::parse_python_command(program.command);
  if (!command || !plan::read_program(*command, plan::read_source).trains_by_ray) return {};
  return fmt::format(
      "the program imports Ray Train, whose Trainer starts workers of its own: each of {} ranks would train a model of "
      "its own; start it as one process (--nproc-per-node 1), or make the Trainer in rank 0 alone (TAAS_HINTS=0 if "
      "that is so)",
      world_size);
}

}  // namespace taas::cli
