"""The time stands still while torch is imported."""

import datetime
import freezegun

with freezegun.freeze_time("2020-01-01"):
    import torch

    print(datetime.datetime.now(), torch.ones(1).item())
print(datetime.datetime.now().year > 2020)
