"""As training does: all-reduces over gloo without end, and a sign of life after each, to FOLDER/HOST-PID: the time.

`alone` leaves the all-reduces out: ranks that do not notice by themselves that another one is gone.
"""

import os
import socket
import sys
import time

life = None
alone = "alone" in sys.argv
if not alone:
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    total = torch.ones(1)
while True:
    if not alone:
        dist.all_reduce(total)
    if life is None:
        life = os.open(f"{sys.argv[1]}/{socket.gethostname()}-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(life, b"%d\n" % time.monotonic_ns())
    time.sleep(0.01)
