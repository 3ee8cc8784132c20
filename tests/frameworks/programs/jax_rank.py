"""JAX over all ranks: the helper of `taas` says who is who."""

import os

import jax
import jax.numpy as jnp
import taas
from jax.experimental import multihost_utils
from reporting import report


def main():
    taas.jax_initialize()
    devices = jax.devices()
    mesh = jax.sharding.Mesh(devices, ("ranks",))
    split, whole = jax.sharding.PartitionSpec("ranks"), jax.sharding.PartitionSpec()
    mine = jnp.array([jax.process_index() + 1.0])
    everywhere = multihost_utils.host_local_array_to_global_array(mine, mesh, split)
    total = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "ranks"), mesh=mesh, in_specs=split, out_specs=whole))
    report(
        int(os.environ["RANK"]),
        processes=jax.process_count(),
        index=jax.process_index(),
        devices=len(devices),
        local_devices=len(jax.local_devices()),
        total=float(total(everywhere)[0]),
    )
    jax.distributed.shutdown()


if __name__ == "__main__":
    main()
