import os
import resource

print([(name, resource.getrlimit(getattr(resource, name))) for name in dir(resource) if name.startswith("RLIMIT_")])
print(os.nice(0), sorted(os.sched_getaffinity(0)), os.sched_getscheduler(0), os.getuid(), os.geteuid(), os.getgroups())
