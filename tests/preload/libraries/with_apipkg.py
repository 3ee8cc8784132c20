"""A package whose names are imported at their first use."""

import sys
import apipkg

apipkg.initpkg("shop", {"ones": "torch:ones", "parts": {"Linear": "torch.nn:Linear"}})
import shop

print("torch" in sys.modules)
print(shop.ones(2).tolist(), shop.parts.Linear.__module__, "torch" in sys.modules)
