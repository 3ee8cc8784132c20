"""Loops over shared loaders; each rank writes the batches of all its loops as JSON.

shared_script.py FOLDER [--kill] [--resume] [--unequal] [--unshared] [--stream] [--split]: a data worker dies while it
makes a batch; the second loop goes on from rank 0's state in the middle of it; each rank has a dataset of another
length; loaders are registered as usual; their dataset is iterable; and gives each rank a part of its own.
"""

import argparse
import json
import os
import pathlib
import signal

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

SAMPLES = 101
BATCH = 4
SEED = 7


class Numbers(Dataset):
    def __init__(self, length, fatal=""):
        self.length, self.fatal = length, fatal

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.fatal and index == 50:
            try:
                os.close(os.open(self.fatal, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return index
            os.kill(os.getpid(), signal.SIGKILL)
        return index


class Rows(IterableDataset):
    """Each logical worker has the numbers of its shard in an order of its own, which is another one in each loop."""

    def __init__(self, length, fatal="", split=False):
        self.numbers, self.split = Numbers(length, fatal), split

    def __iter__(self):
        info = get_worker_info()
        mine = range(len(self.numbers))[info.id :: info.num_workers] if info else range(len(self.numbers))
        if self.split:
            mine = mine[int(os.environ["RANK"]) :: int(os.environ["WORLD_SIZE"])]
        for place in torch.randperm(len(mine)).tolist():
            yield self.numbers[mine[place]]


def loop(loader, end=None):
    batches = []
    for batch in loader:
        batches.append(batch.tolist())
        if len(batches) == end:
            break
    return batches


def resumed(loader, folder, rank):
    """A loop that is left after three batches, and goes on elsewhere from the state that rank 0 has saved."""
    import taas

    batches = loop(loader, 3)
    path = folder / "state.pt"
    if rank == 0:
        torch.save(loader.state_dict(), folder / "unfinished")
        os.rename(folder / "unfinished", path)
    store = torch.distributed.TCPStore(
        os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False, wait_for_workers=False
    )
    store.set(f"saved/{rank}", "") if rank == 0 else store.wait(["saved/0"])
    taas.unregister(loader)
    torch.manual_seed(99 + rank)
    taas.register(loader, shared=True)
    loader.load_state_dict(torch.load(path))
    return batches + loop(loader)


def main():
    import taas

    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    for flag in ("--kill", "--resume", "--unequal", "--unshared", "--stream", "--split"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args()
    rank = int(os.environ["RANK"])
    torch.manual_seed(SEED if rank == 0 or options.unshared else 1000 + rank)
    fatal = str(options.folder / "killed") if options.kill else ""
    found = {}
    for workers in (0, 1, 2, 4):
        length = SAMPLES + (8 * rank if options.unequal else 0)
        if options.stream:
            loader = DataLoader(Rows(length, fatal, options.split), batch_size=BATCH, num_workers=workers)
        else:
            loader = DataLoader(Numbers(length, fatal), batch_size=BATCH, shuffle=True, num_workers=workers)
        taas.register(loader, shared=None if options.unshared else True)
        loops = [loop(loader), resumed(loader, options.folder, rank) if options.resume else loop(loader)]
        found[workers] = {"length": 0 if options.stream else len(loader), "loops": loops}
        taas.unregister(loader)
        if options.unshared or options.resume:
            break
    (options.folder / f"{rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
