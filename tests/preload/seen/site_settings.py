import site
import sys

print(
    site.ENABLE_USER_SITE,
    site.getsitepackages(),
    site.getusersitepackages(),
    [n for n in sys.modules if n.endswith("customize")],
    exit,
    copyright,
    sorted(set(dir(__builtins__)))[-8:],
)
print([name for name in sys.modules if "preload" in name])
