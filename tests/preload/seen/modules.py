import sys

print(sorted(sys.modules))
import json.tool
import xml

print(sorted(sys.modules), hasattr(xml, "etree"), json.tool.__name__)
