// A tour of libtaas's primitives, one line of output each: who I am, then what ranks can do together.
//
//     taas-run --gpus 4 collectives_tour
//     taas-run --nproc-per-node 4 collectives_tour        # on the CPU
#include <ATen/ATen.h>

#include <iostream>
#include <string>
#include <taas/collectives.hpp>
#include <taas/error.hpp>
#include <taas/process_group.hpp>

namespace {

/// One line for all ranks, from the first.
void say(const taas::ProcessGroup& group, const std::string& text) {
  if (group.rank() == 0) std::cout << text << std::endl;
}

at::Tensor number_on(const taas::ProcessGroup& group, std::int64_t value) {
  return at::full({1}, value, at::TensorOptions(at::kLong).device(group.device()));
}

std::string text_of(const at::Tensor& number) { return std::to_string(number.item<std::int64_t>()); }

/// A number goes round: each rank adds its own and hands it to the next one.
void point_to_point(const taas::ProcessGroup& group) {
  const int rank = group.rank(), world = group.world_size();
  auto total = number_on(group, 0);
  if (rank > 0) taas::recv(group, total, rank - 1);
  total += rank;
  if (world > 1) {
    auto sending = taas::send_async(group, total, (rank + 1) % world);
    auto round = number_on(group, 0);
    if (rank == 0) taas::recv(group, round, world - 1);
    sending.wait();
    if (rank == 0) total = round;
  }
  say(group, "send, recv: the sum of all ranks came round as " + text_of(total));
}

/// All ranks get what one of them has.
void broadcast(const taas::ProcessGroup& group) {
  auto value = number_on(group, group.rank() == 0 ? 42 : 0);
  taas::broadcast(group, value);
  if (value.item<int>() != 42) throw taas::Exception("broadcast: this rank has " + text_of(value));
  say(group, "broadcast: every rank has rank 0's 42");
}

/// All ranks get the sum: what data parallel training does with gradients.
void all_reduce(const taas::ProcessGroup& group) {
  auto value = number_on(group, group.rank() + 1);
  taas::all_reduce(group, value, taas::ReduceOp::kSum);
  say(group, "all_reduce: 1 + … + " + std::to_string(group.world_size()) + " = " + text_of(value));
}

/// One rank gets what each has: a row for each rank.
void gather(const taas::ProcessGroup& group) {
  at::Tensor all;
  if (group.rank() == 0) all = at::empty({group.world_size(), 1}, number_on(group, 0).options());
  taas::gather(group, all, number_on(group, 10 * group.rank()));
  if (group.rank() != 0) return;
  std::string list;
  for (int rank = 0; rank < group.world_size(); ++rank) list += (rank == 0 ? "" : ", ") + text_of(all[rank]);
  say(group, "gather: rank 0 has [" + list + "]");
}

/// Each rank gets its own row of what one has.
void scatter(const taas::ProcessGroup& group) {
  at::Tensor all;
  if (group.rank() == 0) all = at::arange(group.world_size(), number_on(group, 0).options()).square().unsqueeze(1);
  auto part = number_on(group, -1);
  taas::scatter(group, part, all);
  if (part.item<int>() != group.rank() * group.rank()) throw taas::Exception("scatter: got " + text_of(part));
  say(group, "scatter: every rank has the square of its rank");
}

}  // namespace

int main() try {
  const auto group = taas::init();
  say(group, "get_rank, get_world_size: rank 0 of " + std::to_string(group.world_size()));
  taas::barrier(group);
  say(group, "barrier: all ranks are here");
  for (auto* step : {point_to_point, broadcast, all_reduce, gather, scatter}) step(group);
} catch (const taas::Exception& error) {
  std::cerr << "collectives_tour: " << error.what() << '\n';
  return 1;
}
