"""Calls are traced; torch is imported meanwhile."""

from viztracer import VizTracer

tracer = VizTracer(verbose=0)
tracer.start()
import torch

torch.nn.Linear(2, 2)(torch.ones(1, 2))
tracer.stop()
tracer.parse()
names = [event["name"].partition(" ")[0] for event in tracer.data["traceEvents"] if event["ph"] == "X"]
print([name for name in names if name.startswith(("Linear.f", "Module.__call", "Module._call"))])
