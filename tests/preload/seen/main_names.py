print(sorted(name for name in globals() if name.startswith("__")), __name__, __package__, __doc__[:9])
