"""Python reads the files of a sharded checkpoint, and puts the state together from them.

usage: shard_files_reference.py PYTHON_PEER
"""

import os
import socket
import subprocess
import sys
import tempfile

import torch

RANKS = 2


def start_rank(peer, rank, port, arguments):
    environment = {
        **os.environ,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(RANKS),
        "LOCAL_WORLD_SIZE": str(RANKS),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
    }
    environment.pop("TORCHELASTIC_USE_AGENT_STORE", None)
    return subprocess.Popen([peer, "shards", *arguments], env=environment)


def put_together(parameter, shards, name):
    """A field of a parameter's state, from the pieces in the shards."""
    pieces = sorted(
        (state["begin"], state["end"], state[name])
        for shard in shards
        for index, state in shard["state"].items()
        if index == parameter["index"]
    )
    assert all(one[1] == other[0] for one, other in zip(pieces, pieces[1:])), "pieces overlap, or leave something out"
    return torch.cat([tensor for _, _, tensor in pieces]).view(parameter["sizes"])


def main(peer):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        directory, whole = os.path.join(folder, "shards"), os.path.join(folder, "whole.pt")
        ranks = [start_rank(peer, rank, port, (directory, whole)) for rank in range(RANKS)]
        assert [rank.wait() for rank in ranks] == [0] * RANKS
        manifest = torch.load(os.path.join(directory, "manifest.pt"), weights_only=True)
        expected = torch.load(whole, weights_only=True)["optimizer"]
        files = os.path.join(directory, manifest["set"]["name"])
        shards = [
            torch.load(os.path.join(files, f"shard-{rank}-of-{RANKS}.pt"), weights_only=True) for rank in range(RANKS)
        ]
        assert [shard["rank"] for shard in shards] == list(range(RANKS)) and all(
            shard["set"] == manifest["set"] for shard in shards
        )
        assert manifest["param_groups"] == expected["param_groups"]
        assert len(manifest["parameters"]) == len(expected["state"]) > 0
        for parameter in manifest["parameters"]:
            for name in ("exp_avg", "exp_avg_sq"):
                assert torch.equal(
                    put_together(parameter, shards, name), expected["state"][parameter["index"]][name]
                ), (parameter, name)
        rest = torch.load(os.path.join(files, "checkpoint.pt"), weights_only=True)
        assert (
            rest["epoch"] == 3 and rest["extra"]["note"] == "from C++" and rest["optimizer"] is None and rest["model"]
        )
    print("Python reads the shards")


if __name__ == "__main__":
    main(sys.argv[1])
