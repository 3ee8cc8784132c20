import sys
import __main__

print(__main__ is sys.modules["__main__"], __main__.__dict__ is globals(), __main__.__annotations__, repr(__main__))
