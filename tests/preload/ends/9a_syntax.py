compile("x = (1,\ny = ]", "made up.py", "exec")
