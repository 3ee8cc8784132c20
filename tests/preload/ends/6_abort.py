import faulthandler
import os

faulthandler.enable()
os.abort()
