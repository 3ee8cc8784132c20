"""Lines of a function are traced; torch is imported meanwhile."""

import os
import sys
import coverage


def train():
    import torch

    for _ in range(2):
        value = torch.ones(2).sum().item()
    return value


recorder = coverage.Coverage(data_file=None, include=["*/with_coverage.py"])
recorder.start()
value = train()
recorder.stop()
data = recorder.get_data()
print(value, sorted((os.path.basename(file), data.lines(file)) for file in data.measured_files()), sys.gettrace())
