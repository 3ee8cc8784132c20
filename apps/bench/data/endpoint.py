"""One end of a delivery: `serve CONTENDER ADDRESS KIND COUNT` or `consume CONTENDER ADDRESS PORT KIND COUNT`."""

import json
import resource
import sys
import time

import contenders
import payloads

WARM = 0.3  # of the batches come before the clock starts: connections, slots and their pages are there


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def consume(name: str, address: str, port: int, kind: str, count: int) -> dict:
    wanted = payloads.expected(kind)
    warm = max(int(count * WARM), 4)
    began = took = cpu = memory = 0.0
    seen = 0
    for batch in contenders.CONTENDERS[name].batches(address, port, kind, count):
        sum_of_pages = payloads.touch(batch)
        if name not in contenders.UNCHECKED and sum_of_pages != wanted[seen % payloads.POOL]:
            sys.exit(f"{name}: batch {seen} is not what was sent")
        del batch
        seen += 1
        if seen == warm:
            began, cpu, memory = time.perf_counter(), cpu_seconds(), resident_bytes()
        if seen == count:  # what follows is the end of worker processes
            took, cpu, memory = time.perf_counter() - began, cpu_seconds() - cpu, resident_bytes() - memory
    if seen != count:
        sys.exit(f"{name}: {seen} batches instead of {count}")
    moved = (count - warm) * payloads.batch_bytes(kind)
    return {
        "gigabytes_per_second": moved / took / 1e9,
        "batches_per_second": (count - warm) / took,
        "cpu_seconds_per_gigabyte": cpu / moved * 1e9,
        "growth_bytes": memory,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def main():
    role, name, address, *rest = sys.argv[1:]
    if role == "serve":
        kind, count = rest
        contenders.CONTENDERS[name].serve(address, kind, int(count))
    else:
        port, kind, count = rest
        print(json.dumps(consume(name, address, int(port), kind, int(count))), flush=True)


if __name__ == "__main__":
    main()
