print("the last one ends well")
