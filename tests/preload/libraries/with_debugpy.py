"""It is imported before torch, without a client."""

import sys
import threading
import debugpy
import torch

print(torch.ones(2).tolist(), debugpy.is_client_connected(), sys.gettrace(), threading.gettrace())
