"""Shows tracebacks and logs in its way, and leaves torch's frames out."""

import logging
import sys
import rich.logging
import rich.pretty
import rich.traceback

logging.basicConfig(handlers=[rich.logging.RichHandler(show_time=False, show_path=False)], level=0)
import torch

before = sys.excepthook
rich.traceback.install(suppress=[torch], width=90)
rich.pretty.install()
logging.getLogger("torch").warning("from torch")
print(before is sys.excepthook, sys.displayhook.__module__, logging.getLogger("torch").handlers)
torch.ones(2) @ torch.ones(3)
