class Bad:
    def __del__(self):
        raise ValueError("in __del__")


bad = Bad()
del bad
raise SystemExit(6)
