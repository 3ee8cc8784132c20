import os

pid = os.getpid()
print(os.getsid(0) == pid, os.getpgrp() == pid, os.getcwd())
