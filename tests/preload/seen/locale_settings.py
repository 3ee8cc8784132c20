import codecs
import locale
import os
import sys
import time

print(
    locale.setlocale(locale.LC_ALL),
    locale.getpreferredencoding(),
    sys.getfilesystemencoding(),
    sys.getfilesystemencodeerrors(),
    sys.getdefaultencoding(),
    time.tzname,
    os.umask(0o22),
)
print(codecs.lookup_error("surrogateescape"), "ä".encode())
