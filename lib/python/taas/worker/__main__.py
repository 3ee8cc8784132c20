"""`python -m taas.worker` is a data worker: the launcher starts it."""

from .worker import main

if __name__ == "__main__":
    main()
