"""The name of the process, over the words of its command line."""

import setproctitle
import torch

print(setproctitle.getproctitle().rpartition("/")[2])
setproctitle.setproctitle("trains")
with open("/proc/self/cmdline") as file:
    print(setproctitle.getproctitle(), file.read().strip("\0"), torch.ones(1).item())
