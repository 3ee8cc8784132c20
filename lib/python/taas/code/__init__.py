"""What a program is made of: its objects, code and globals, and how they are pickled."""
