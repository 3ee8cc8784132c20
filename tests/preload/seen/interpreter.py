import sys

print(sys.version, sys.implementation, sys.hash_info, sys.getrecursionlimit(), sys.getswitchinterval(), sys.api_version)
