"""Functions of a module that is imported later are traced."""

import logfire

logfire.configure(send_to_logfire=False, console=logfire.ConsoleOptions(include_timestamps=False, colors="never"))
logfire.install_auto_tracing(modules=["filecmp"], min_duration=0)
import torch
import filecmp

logfire.info("sum {value}", value=torch.ones(2).sum().item())
print(filecmp.cmp(__file__, __file__))
