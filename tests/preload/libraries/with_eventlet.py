"""Patches the standard library before torch is imported."""

import eventlet

eventlet.monkey_patch()
import threading
import torch

print(torch.ones(2).tolist(), eventlet.patcher.is_monkey_patched("socket"), threading.current_thread().name)
print(eventlet.spawn(torch.ones, 1).wait())
