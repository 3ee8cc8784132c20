import sys

print(sys.flags, sys.warnoptions, sys._xoptions, sys.dont_write_bytecode, sys.pycache_prefix, hasattr(sys, "ps1"))
