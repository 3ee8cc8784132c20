"""Allocations of a block are tracked."""

import os
import tempfile
import memray
import torch

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "allocations")
    with memray.Tracker(path):
        torch.ones(1000, 1000)
    records = memray.FileReader(path).get_high_watermark_allocation_records()
    print([record.size // 1_000_000 for record in records if record.size >= 4_000_000])
