"""One way of into_gpu.py in a process of its own: WAY KIND COUNT WORKERS cuda|cpu. Prints one line of JSON."""

import collections
import json
import os
import subprocess
import sys
import time
import weakref

import contenders
import payloads
import torch

WARM = 0.3  # of the batches come before the clock starts: connections, slots, registrations are there


def sum_of_pages(batch: torch.Tensor) -> torch.Tensor:
    """On the batch's own device, without waiting for it; the same bytes as payloads.touch."""
    return batch.reshape(-1).view(torch.uint8)[::4096].sum()


def ready(kind: str) -> list:
    shape, dtype = payloads.SHAPES[kind]
    return [torch.from_numpy(array).view(dtype).reshape(shape) for array in payloads.ready_pool(kind)]


def limit(kind: str, count: int):
    """Pinned memory that is there already, again and again: what the bus can do."""
    pool = [batch.pin_memory() for batch in ready(kind)]
    for number in range(count):
        yield pool[number % payloads.POOL]


def pinning(kind: str, count: int):
    """Batches that are there already, pinned one after the other."""
    from taas.delivery.pinning import PinnedCopies

    pool = ready(kind)
    copies = PinnedCopies()
    for number in range(count):
        yield copies.finish(copies.start(pool[number % payloads.POOL]))


def remote(kind: str, count: int, pins: bool):
    """A worker of another machine, as far as the wire can tell: TCP and TLS over the loopback interface."""
    plan = os.environ["TAAS_DATA_PLAN"]
    contenders.write_plan(plan, [], "tls")
    endpoint = os.path.join(os.path.dirname(os.path.abspath(__file__)), "endpoint.py")
    worker = subprocess.Popen(
        [sys.executable, endpoint, "serve", "taas-tls", "127.0.0.1", kind, str(count)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        contenders.write_plan(plan, [("127.0.0.1", int(worker.stdout.readline()), "")], "tls")
        import taas

        with taas.register(payloads.loader(kind, count, pin_memory=pins)) as loader:
            yield from loader
    finally:
        worker.kill()
        worker.wait()


def here(way: str, kind: str, count: int, workers: int):
    with contenders.workers_here(workers):
        import taas

        loader = payloads.loader(kind, count, num_workers=workers, pin_memory=way == "taas-pinned")
        with taas.register(loader, device="cuda" if way == "taas-device" else None):
            yield from loader


def batches(way: str, kind: str, count: int, workers: int):
    if way == "limit":
        return limit(kind, count)
    if way == "pinning":
        return pinning(kind, count)
    if way.startswith("remote"):
        return remote(kind, count, pins=way == "remote-pinned")
    if way.startswith("plain"):
        return payloads.loader(kind, count, num_workers=workers, pin_memory=way == "plain-pinned")
    return here(way, kind, count, workers)


def pin_ordinary_memory():
    """Without a GPU: memory that is used again when nobody has it any more takes the place of pinned memory."""
    free = collections.defaultdict(list)
    empty_strided = torch.empty_strided

    def empty(shape, stride, pin_memory=False, **options):
        if not pin_memory:
            return empty_strided(shape, stride, **options)
        size = empty_strided(shape, stride, dtype=options["dtype"], device="meta").untyped_storage().nbytes()
        memory = free[size].pop() if free[size] else bytearray(size)
        view = memoryview(memory)  # it lives as long as the storage
        weakref.finalize(view, free[size].append, memory)
        return torch.frombuffer(view, dtype=options["dtype"]).as_strided(shape, stride)

    torch.cuda.is_initialized = lambda: True
    torch.empty_strided = empty


def main():
    way, kind, count, workers = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    without_gpu = sys.argv[5] == "cpu"
    if without_gpu:
        pin_ordinary_memory()
    elif not torch.cuda.is_available():
        sys.exit("into_gpu_rank: PyTorch sees no GPU on this machine")
    stays_here = without_gpu or way == "remote-without-gpu"
    synchronize = (lambda: None) if stays_here else torch.cuda.synchronize
    if not stays_here:
        torch.zeros(1, device="cuda")  # the program uses the GPU
    wanted = payloads.expected(kind)
    warm = max(int(count * WARM), 4)
    sums, pinned, began, took = [], 0, 0.0, 0.0
    for number, batch in enumerate(batches(way, kind, count, workers)):
        if number == warm:
            synchronize()
            began = time.perf_counter()
        pinned += 0 if stays_here or batch.is_cuda else batch.is_pinned()
        there = batch if stays_here else batch.to("cuda", non_blocking=True)
        sums.append(sum_of_pages(there))
        del batch, there
        if number == count - 1:  # what follows is the end of worker processes
            synchronize()
            took = time.perf_counter() - began
    if len(sums) != count:
        sys.exit(f"{way}: {len(sums)} batches instead of {count}")
    seen = torch.stack(sums).cpu().tolist()
    for number, value in enumerate(seen):
        if value != wanted[number % payloads.POOL]:
            sys.exit(f"{way}: batch {number} is not what was made")
    moved = (count - warm) * payloads.batch_bytes(kind)
    print(
        json.dumps(
            {
                "gigabytes_per_second": moved / took / 1e9,
                "pinned": pinned / count,
                "peak_gpu_bytes": 0 if stays_here else torch.cuda.max_memory_allocated(),
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
