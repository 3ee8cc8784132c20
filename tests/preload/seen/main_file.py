print(
    __file__, __cached__, __spec__, type(__loader__).__name__, __loader__.name, __loader__.path, __builtins__.__name__
)
