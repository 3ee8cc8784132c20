"""The launcher around this process, and the native half of data delivery."""
