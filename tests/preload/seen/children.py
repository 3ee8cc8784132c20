import os

print(open(f"/proc/self/task/{os.getpid()}/children").read())
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError as error:
    print(error)
