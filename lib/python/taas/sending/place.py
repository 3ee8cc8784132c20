"""Which rank a data worker makes a batch for: its variables, and what torch.distributed answers."""

from __future__ import annotations

import functools
import os
from typing import Any

import torch.distributed

VARIABLES = frozenset(
    "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK NNODES GROUP_RANK GROUP_WORLD_SIZE ROLE_NAME ROLE_RANK "
    "ROLE_WORLD_SIZE MASTER_ADDR MASTER_PORT LOCAL_SIZE CROSS_RANK CROSS_SIZE TORCHELASTIC_RUN_ID "
    "TORCHELASTIC_RESTART_COUNT TORCHELASTIC_MAX_RESTARTS SLURM_PROCID SLURM_LOCALID SLURM_NODEID SLURM_NTASKS "
    "SLURM_NPROCS SLURM_NNODES PMI_RANK PMI_SIZE PMIX_RANK OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE "
    "OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_LOCAL_SIZE OMPI_COMM_WORLD_NODE_RANK MV2_COMM_WORLD_RANK "
    "MV2_COMM_WORLD_SIZE MV2_COMM_WORLD_LOCAL_RANK JAX_PROCESS_ID JAX_NUM_PROCESSES CUDA_VISIBLE_DEVICES "
    "TAAS_DEVICES_PER_RANK".split()
)
"""What launchers tell a rank about itself. A data worker has the values of the rank that it works for, or none."""

_COLLECTIVES = (
    "_allgather_base _get_backend _reduce_scatter_base all_gather_single all_to_all_single allgather "
    "allgather_coalesced allgather_into_tensor_coalesced allreduce allreduce_coalesced alltoall alltoall_base barrier "
    "broadcast gather monitored_barrier recv recv_anysource reduce reduce_scatter reduce_scatter_tensor_coalesced "
    "scatter send split_group".split()
)

_REFUSAL = (
    "taas: a data worker cannot communicate through torch.distributed: it works for rank {rank} of {size}, but is not "
    "that process. Communicate in the training process and hand the result to the dataset"
)

Group = tuple[str, int, int]
"""The backend of the default group, the rank in it and its size."""


def variables(now: dict[str, str]) -> dict[str, str]:
    """Those of this rank. `now` is a copy of os.environ."""
    return {name: now[name] for name in VARIABLES & now.keys()}


def group() -> Group | None:
    """What torch.distributed says in this rank; None before init_process_group."""
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return None
    return torch.distributed.get_backend(), torch.distributed.get_rank(), torch.distributed.get_world_size()


def pretend(wanted: Group | None) -> None:
    """In a data worker: torch.distributed answers as in a rank whose group is `wanted`, and refuses to communicate."""
    if not torch.distributed.is_available():
        return
    world: Any = torch.distributed.distributed_c10d._world
    world.default_pg = None
    if wanted is not None:
        backend, rank, size = wanted
        made = _stand_in(rank, size)
        world.pg_map[made] = (backend, None)
        world.pg_names[made] = "default"
        world.pg_group_ranks[made] = {number: number for number in range(size)}
        world.default_pg = made


def _refusing(name: str) -> Any:
    def refuse(self: Any, *_: Any, **__: Any) -> Any:
        raise RuntimeError(_REFUSAL.format(rank=self.rank(), size=self.size()))

    refuse.__name__ = name
    return refuse


_Group: Any = torch.distributed.ProcessGroup if torch.distributed.is_available() else object


class _StandIn(_Group):  # type: ignore[misc]
    """A default group that knows its rank and size, and no other process."""


@functools.lru_cache(maxsize=1024)
def _stand_in(rank: int, size: int) -> _StandIn:
    return _StandIn(rank, size)


for _name in _COLLECTIVES:
    setattr(_StandIn, _name, _refusing(_name))


class PlaceReads:
    """`seen` is True once a variable of the rank's place was looked at, or torch.distributed was asked."""

    seen = False


class _Noticing(os._Environ):
    def __getitem__(self, name: str) -> str:
        if name in VARIABLES:
            PlaceReads.seen = True
        return super().__getitem__(name)


def notice() -> None:
    """In a data worker that prepares, before it imports the loader: there is no rank yet that could be asked for."""
    os.environ.__class__ = _Noticing
    if torch.distributed.is_available():
        for name in ("is_initialized", "get_rank", "get_world_size"):
            _notice(torch.distributed, name)


def _notice(module: Any, name: str) -> None:
    plain = getattr(module, name)

    def noticed(*arguments: Any, **named: Any) -> Any:
        PlaceReads.seen = True
        return plain(*arguments, **named)

    setattr(module, name, noticed)
