import signal

print([(int(number), str(signal.getsignal(number))) for number in sorted(signal.valid_signals())])
print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.sigpending(), signal.getitimer(signal.ITIMER_REAL))
print([line for line in open("/proc/self/status") if line[:3] == "Sig" and line[:4] != "SigQ"])
