"""A finder that wraps what other finders find is asked for all modules that an import brings."""

import importlib.util
import sys


class Loader:
    def __init__(self, inner):
        self.inner = inner

    def create_module(self, spec):
        return self.inner.create_module(spec)

    def exec_module(self, module):
        self.inner.exec_module(module)
        seen.append(module.__name__)


class Finder:
    def find_spec(self, name, path=None, target=None):
        if not name.startswith(("torch", "numpy", "queue")) or name in asked:
            return None
        asked.add(name)
        spec = importlib.util.find_spec(name)
        if spec and spec.loader:
            spec.loader = Loader(spec.loader)
        return spec


asked, seen = set(), []
sys.meta_path.insert(0, Finder())
import queue

import torch

print(seen[:3], len(seen), sorted(seen), torch.ones(2).sum(), queue.__name__)
