"""The ways to train that docs/parallelism.md describes, the list of devices, and one stream of batches for ranks."""

import json
import re

from check_gpu.result import Seen, check
from check_gpu.session import RANKS, ROOT, Session

EXAMPLES = ROOT / "docs" / "examples"
MODES = EXAMPLES / "parallelism"
SMALL = ("--repeats", 2, "--batches", 2, "--batch-size", 8, "--image-size", 64)


@check("devices", "taas-run devices: each GPU is listed, and a tensor works there")
def devices(session: Session) -> Seen:
    done = session.run(session.bin / "taas-run", "devices", PYTHON_EXEC=session.python)
    lines = [line for line in done.out.splitlines() if line.startswith("cuda:")]
    done.need(done.code == 0 and len(lines) >= session.gpus, f"{len(lines)} GPUs are listed, exit code {done.code}")
    done.need(all(line.endswith(" works") for line in lines), "a tensor does not work on a GPU")
    return Seen(lines[0])


@check("one process", "auto mode as a plain script, and nn.DataParallel over all GPUs that there are")
def one_process(session: Session) -> Seen:
    auto = session.run(session.python, EXAMPLES / "auto_mode.py")
    auto.need(auto.code == 0, f"auto_mode.py ended with {auto.code}")
    split = session.run(session.python, MODES / "data_parallel.py")
    inside = [int(size) for size in re.findall(r"inside the model: input \((\d+),", split.out)]
    split.need(
        split.code == 0 and sum(inside) == 44,
        f"data_parallel.py ended with {split.code}, {sum(inside)} of 44 samples went in",
    )
    return Seen(f"sizes inside the model: {', '.join(map(str, inside[:8]))}")


@check("toy ddp", "docs' DDP example over nccl, four ranks; its weights are those of the same run over gloo")
def toy_ddp(session: Session) -> Seen:
    seen = [session.taas_run(4, MODES / "toy_ddp.py")]
    seen.append(session.run(session.bin / "taas-run", "--gpus", 4, MODES / "toy_ddp.py", CUDA_VISIBLE_DEVICES=""))
    weights = []
    for done in seen:
        found = re.search(r"weights (-?\d+\.\d+)", done.out)
        done.need(done.code == 0 and found is not None, f"toy_ddp.py ended with {done.code}")
        weights.append(float(found[1]))
    seen[0].need(
        "cuda" in seen[0].out and abs(weights[0] - weights[1]) < 1e-3,
        f"weights {weights[0]} on GPUs, {weights[1]} on the CPU",
    )
    return Seen(f"weights {weights[0]}, on the CPU {weights[1]}")


@check("replicas over two", "a rank with two devices (--devices-per-rank 2), its model cut in two, under DDP", gpus=2)
def replicas(session: Session) -> Seen:
    ranks = session.gpus // 2
    done = session.run(
        session.bin / "taas-run", "--gpus", ranks * 2, "--devices-per-rank", 2, MODES / "toy_two_devices.py"
    )
    done.need(
        done.code == 0 and "on cuda:0 and cuda:1" in done.out,
        f"toy_two_devices.py ended with {done.code}, or elsewhere",
    )
    return Seen(done.out.strip().splitlines()[-1])


@check("model parallel", "ResNet-50 in two halves and pipelined, over two GPUs or one of them twice")
def model_parallel(session: Session) -> Seen:
    session.need_module("torchvision", "matplotlib")
    done = session.run(
        session.python, MODES / "resnet50_model_parallel.py", *SMALL, "--split-sizes", 4, "--output", session.folder
    )
    done.need(done.code == 0, f"resnet50_model_parallel.py ended with {done.code}")
    return Seen("in two halves, and pipelined")


@check(
    "shared stream",
    "taas.register(loader, shared=True), four ranks: each index once over all ranks, in tensors on the GPU",
)
def shared_stream(session: Session) -> Seen:
    done = session.taas_run(4, "--tee", "3", "--cpus", 1, RANKS / "shared_stream.py")
    parts = [json.loads(found) for found in re.findall(r"INDICES (\[.*?\])", done.out)]
    indices = sorted(index for part in parts for index in part)
    done.need(
        done.code == 0 and len(parts) == 4 and indices == list(range(1000)),
        f"{len(indices)} of 1000 indices, exit code {done.code}",
    )
    return Seen(f"{', '.join(str(len(part)) for part in parts)} indices")
