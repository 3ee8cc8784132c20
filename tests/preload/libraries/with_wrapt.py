"""Hooks run when torch and one of its modules are imported, in this order, and a wrapper is called."""

import sys
import wrapt

order = []
wrapt.register_post_import_hook(lambda module: order.append(module.__name__), "torch")
wrapt.register_post_import_hook(lambda module: order.append((module.__name__, "torch.optim" in sys.modules)), "decimal")
wrapt.register_post_import_hook(lambda module: order.append(module.__name__), "torch.nn.functional")


@wrapt.when_imported("torch.nn")
def patch(module):
    wrapt.wrap_function_wrapper(module, "Linear.forward", lambda call, _, words, named: call(*words, **named) * 0)


import torch

print(order, torch.nn.Linear(2, 2)(torch.ones(1, 2)).abs().tolist(), type(torch.nn.Linear.forward).__name__)
