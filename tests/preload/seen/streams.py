import sys

for stream in (sys.stdin, sys.stdout, sys.stderr):
    print(
        stream.name,
        stream.mode,
        stream.encoding,
        stream.errors,
        stream.newlines,
        stream.line_buffering,
        stream.write_through,
        stream.isatty(),
        stream.fileno(),
        stream.seekable(),
        stream.readable(),
        stream.writable(),
        type(stream.buffer).__name__,
        stream.closed,
    )
print(sys.stdin is sys.__stdin__, sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__)
