"""What it costs the launcher to watch 8 ranks of torch, and to look at them, in Python and in C++: CPU time of its own process and, for
C++, of the one that names the lines; and how soon `look` answers."""

import os
import pathlib
import subprocess
import tempfile
import time

import measure

PROGRAM = """
import os, pathlib, sys, time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
pathlib.Path(sys.argv[1], f"up-{os.environ['RANK']}").touch()
while True:
    time.sleep(0.2)  # it moves: nothing is looked at but when somebody asks
"""
LOOKS = 10
STEADY_SECONDS = 30
READS = 2  # of each rank for one answer


def cpu_ms(pid: int) -> float:
    """That all threads of the process have run."""
    threads = pathlib.Path(f"/proc/{pid}/task")
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads.iterdir()) / 1e6


def ended_children_ms(pid: int) -> float:
    """That children of the process have run which have ended."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK") * 1000


def looks_at_cpp(taas_run: pathlib.Path) -> dict:
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        command = [str(taas_run), "--nproc-per-node", str(measure.RANKS), "--shutdown-timeout", "1", "train", "--epochs", "100000"]
        run = measure.start(command, folder)
        log = folder / "taas-runs" / "latest" / "generation-0" / "rank-0000.out"
        measure.wait_until(lambda: log.exists() and "epoch" in log.read_text(), "the first epoch", run)
        agent = measure.children(run.pid)[0]
        look = [str(taas_run), "look", (folder / "taas-runs" / "latest").resolve().name]
        cpu, began = ended_children_ms(agent), time.perf_counter()
        for _ in range(LOOKS):
            subprocess.run(look, check=True, stdout=subprocess.DEVNULL)
        answer_seconds = (time.perf_counter() - began) / LOOKS
        a_look = (ended_children_ms(agent) - cpu) / LOOKS / READS / measure.RANKS
        run.terminate()
        run.wait()
    return {"the lines of one rank of C++, CPU": a_look / 1000, "an answer about ranks of C++": answer_seconds}


def looks_at_python(taas_run: pathlib.Path) -> dict:
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "program.py").write_text(PROGRAM)
        command = [str(taas_run), "--nproc-per-node", str(measure.RANKS), "--shutdown-timeout", "1", "program.py", str(folder)]
        run = measure.start(command, folder)
        ready = [folder / f"up-{rank}" for rank in range(measure.RANKS)]
        measure.wait_until(lambda: all(path.exists() for path in ready), "all ranks are up", run)
        agent = measure.children(run.pid)[0]
        look = [str(taas_run), "look", (folder / "taas-runs" / "latest").resolve().name]
        subprocess.run(look, check=True, stdout=subprocess.DEVNULL)  # the first one reads the interpreter's files
        cpu, began = cpu_ms(agent), time.perf_counter()
        for _ in range(LOOKS):
            subprocess.run(look, check=True, stdout=subprocess.DEVNULL)
        answer_seconds = (time.perf_counter() - began) / LOOKS
        a_look = (cpu_ms(agent) - cpu) / LOOKS / READS / measure.RANKS
        cpu = cpu_ms(agent)
        time.sleep(STEADY_SECONDS)
        steady = (cpu_ms(agent) - cpu) / 1000 / STEADY_SECONDS
        run.terminate()
        run.wait()
    return {"a look at one rank, CPU": a_look / 1000, "the watch of 8 ranks, CPU a second": steady, "an answer": answer_seconds}


def microseconds(result: dict) -> str:
    return f"{result['median'] * 1e6:.0f} µs ({result['min'] * 1e6:.0f} to {result['max'] * 1e6:.0f})"


def main():
    options = measure.arguments(__doc__)
    measure.need("torch")
    taas_run = (options.bin / "taas-run").resolve()
    rounds = [{**looks_at_python(taas_run), **looks_at_cpp(taas_run)} for _ in range(options.rounds)]
    results = {name: measure.summary([one[name] for one in rounds]) for name in rounds[0]}
    rows = [[name, microseconds(result)] for name, result in results.items()]
    measure.report("look", options, results, rows, ["what", "time"], [f"{os.cpu_count()} cores"])


if __name__ == "__main__":
    measure.run(main)
