import pickle


class Point:
    def __init__(self, x):
        self.x = x


def double(x):
    return 2 * x


print(pickle.dumps(double), pickle.dumps(Point(3)), pickle.loads(pickle.dumps(Point(3))).x)
