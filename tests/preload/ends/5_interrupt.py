raise KeyboardInterrupt("as by Ctrl-C")
