import sys

sys.exit("a reason in words")
