"""A loader as it goes to data workers: its parts as a pickle, their memory, and the state of the program."""
