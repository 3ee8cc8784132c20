import os

print("lost or not", end="")
os._exit(3)
