import sys

print(sys.path, sys.prefix, sys.base_prefix, sys.exec_prefix, sys.executable, sys._base_executable, sys.platlibdir)
