"""Checks of what only a machine with GPUs can show.

scripts/check-gpu runs this package; `python3 -m check_gpu --list` says what is in it.
"""
