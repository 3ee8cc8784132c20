"""Makes the records of tests/fuzz/corpus/flight_record: what torch's flight recorder knows of a hang.

Three ranks hang over gloo:

  TORCH_FR_BUFFER_SIZE=100 torchrun --nproc-per-node 3 record_flights.py FOLDER CASE

CASE: missing (rank 2 does not come to the third all_reduce), operation (it calls broadcast instead).
"""

import datetime
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

folder, case = sys.argv[1:]
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=2))
odd = dist.get_rank() == 2
gradients = torch.ones(262144)
for _ in range(2):
    dist.all_reduce(gradients)
try:
    if odd and case == "missing":
        time.sleep(3)
    elif odd and case == "operation":
        dist.broadcast(gradients, 0)
    else:
        dist.all_reduce(gradients)
except RuntimeError as error:
    print(error)
pathlib.Path(folder, f"{case}-{torch.__version__.split('+')[0]}-{dist.get_rank()}").write_bytes(c10d._dump_fr_trace())
os._exit(0)
