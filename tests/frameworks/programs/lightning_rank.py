"""The Lightning example, and what Lightning made of its surroundings."""

import os
import sys

sys.path.insert(0, os.environ["EXAMPLES"])
import lightning_digits  # noqa: E402
import torch  # noqa: E402
from lightning.fabric.utilities.rank_zero import rank_zero_only  # noqa: E402
from reporting import digest, report  # noqa: E402

AT_IMPORT = rank_zero_only.rank  # loggers and checkpoints trust what Lightning found then


def main():
    trainer, model = lightning_digits.main(["--epochs", "2"])
    environment = trainer.strategy.cluster_environment
    report(
        int(os.environ["RANK"]),
        environment=type(environment).__name__,
        at_import=AT_IMPORT,
        global_rank=trainer.global_rank,
        local_rank=trainer.local_rank,
        node_rank=trainer.node_rank,
        world=trainer.world_size,
        steps=trainer.global_step,
        loss=model.last_loss.hex(),
        parameters=digest(model.parameters()),
    )
    torch.distributed.destroy_process_group()  # gloo's threads, where they outlive Python's end, abort a rank


if __name__ == "__main__":
    main()
