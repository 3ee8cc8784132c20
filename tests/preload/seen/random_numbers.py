import random
import secrets
import tempfile
import uuid

first = random.random(), secrets.token_hex(), uuid.uuid4(), next(tempfile._get_candidate_names())
print(len(set(map(str, first))), random.getstate()[0])
print("UNIQUE", *first)
