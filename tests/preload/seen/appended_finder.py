"""As six and pandas have one."""

import sys
import warnings


class Finder:
    def find_spec(self, name, path=None, target=None):
        return None


sys.meta_path.append(Finder())
with warnings.catch_warnings():
    import torch

    print(len(warnings.filters))
print(len(warnings.filters), torch.__name__)
sys.meta_path.insert(0, Finder())
import concurrent.futures
import importlib.metadata
import urllib.request

print(urllib.request.Request("http://x").host, concurrent.futures.wait.__name__, importlib.metadata.version.__name__)
