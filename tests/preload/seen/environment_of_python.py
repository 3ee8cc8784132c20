import ctypes
import os

get = ctypes.CDLL(None).getenv
get.restype = ctypes.c_char_p
for name, value in os.environ.items():
    assert get(os.fsencode(name)) == os.fsencode(value), name
print(
    [name for name in os.environ if "PRELOAD" in name], os.environ.get("PYTHONPATH"), os.environ.get("OMP_NUM_THREADS")
)
print(list(os.environ))
