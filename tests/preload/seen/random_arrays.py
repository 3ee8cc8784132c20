import numpy

state = numpy.random.get_state()
print(state[0], state[2:], len(state[1]))
print("UNIQUE", numpy.random.random(), numpy.random.default_rng().random(), state[1].sum())
