"""A tour of torch.distributed's primitives, one line of output each: who I am, then what ranks can do together.

taas-run --nproc-per-node 4 docs/examples/collectives_tour.py
taas-run --gpus 16 docs/examples/collectives_tour.py            # two nodes of eight
"""

import os

import torch
import torch.distributed as dist


def say(text: str) -> None:
    """One line for all ranks, from the first."""
    if dist.get_rank() == 0:
        print(text, flush=True)


def send_and_receive(device: torch.device) -> None:
    """A number goes down the line of ranks; each call returns when its message is through."""
    rank, world = dist.get_rank(), dist.get_world_size()
    number = torch.tensor([7.0 if rank == 0 else 0.0], device=device)
    if rank > 0:
        dist.recv(number, src=rank - 1)
    if rank < world - 1:
        dist.send(number, dst=rank + 1)
    assert number.item() == 7.0
    say("send, recv: rank 0's 7 has gone down the line")


def exchange(*messages: dist.P2POp) -> None:
    """Sends and receives these at once, and waits: NCCL wants messages in batches."""
    for work in dist.batch_isend_irecv(list(messages)):
        work.wait()


def messages_meanwhile(device: torch.device) -> None:
    """A sum goes round: each rank adds its own number and hands it to the next one. These calls return at once."""
    rank, world = dist.get_rank(), dist.get_world_size()
    total = torch.zeros(1, device=device)
    if rank > 0:
        exchange(dist.P2POp(dist.irecv, total, rank - 1))
    total += rank
    if world > 1:
        exchange(dist.P2POp(dist.isend, total, (rank + 1) % world))
        if rank == 0:
            exchange(dist.P2POp(dist.irecv, total, world - 1))
    say(f"isend, irecv: the sum of all ranks came round as {int(total)}")


def broadcast(device: torch.device) -> None:
    """All ranks get what one of them has."""
    value = torch.tensor([42.0 if dist.get_rank() == 0 else 0.0], device=device)
    dist.broadcast(value, src=0)
    assert value.item() == 42.0
    say("broadcast: every rank has rank 0's 42")


def all_reduce(device: torch.device) -> None:
    """All ranks get the sum: what data parallel training does with gradients."""
    value = torch.tensor([dist.get_rank() + 1.0], device=device)
    dist.all_reduce(value, op=dist.ReduceOp.SUM)
    say(f"all_reduce: 1 + … + {dist.get_world_size()} = {int(value)}")


def gather(device: torch.device) -> None:
    """One rank gets what each has."""
    value = torch.tensor([10 * dist.get_rank()], device=device)
    places = [torch.empty_like(value) for _ in range(dist.get_world_size())] if dist.get_rank() == 0 else None
    dist.gather(value, places, dst=0)
    say(f"gather: rank 0 has {[int(place) for place in places or []]}")


def scatter(device: torch.device) -> None:
    """Each rank gets its own part of what one has."""
    rank, world = dist.get_rank(), dist.get_world_size()
    parts = [torch.tensor([part * part], device=device) for part in range(world)] if rank == 0 else None
    part = torch.empty(1, dtype=torch.int64, device=device)
    dist.scatter(part, parts, src=0)
    assert part.item() == rank * rank
    say("scatter: every rank has the square of its rank")


def main() -> None:
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device)
    else:
        device = torch.device("cpu")
        dist.init_process_group("gloo")
    say(f"get_rank, get_world_size: rank {dist.get_rank()} of {dist.get_world_size()}")
    dist.barrier()
    say("barrier: all ranks are here")
    for step in (send_and_receive, messages_meanwhile, broadcast, all_reduce, gather, scatter):
        step(device)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
