print([line for line in open("/proc/self/status") if line.startswith(("Cap", "NoNewPrivs", "Seccomp", "Cpus_allowed_list", "Threads", "TracerPid"))])
print(open("/proc/self/oom_score_adj").read(), open("/proc/self/timerslack_ns").read() if False else "")
