"""The processes of the tests' own SLURM: slurmctld and munged on the login node, one slurmd on each other node."""

import os
import pathlib
import secrets
import stat

from namespaces import Cluster
from processes import wait_until

GPU_NODES = ("g0", "g1", "g2", "g3")
CPU_NODES = ("c0", "c1")
SMALL_NODE = "h0"  # with half as many GPUs as the others
GPUS = 8
# From the request to stop to the kill: enough for ranks on a busy machine; tests with stubborn ones wait so long.
KILL_WAIT_SECONDS = 10
GRACE_SECONDS = 10  # the same, of a job that is preempted

CONFIGURATION = """
ClusterName=taas
FirstJobId={first_job}
SlurmctldHost=login
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
MailProg=/bin/true
GresTypes=gpu
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=0,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
JobFileAppend=1
ReturnToService=2
KillWait={kill_wait}
MinJobAge=600
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmdDebug=verbose
NodeName=g[0-3] CPUs=16 RealMemory=1000 Gres=gpu:{gpus} State=UNKNOWN
NodeName=h0 CPUs=16 RealMemory=1000 Gres=gpu:{few_gpus} State=UNKNOWN
NodeName=c[0-1] CPUs=16 RealMemory=1000 State=UNKNOWN
PartitionName=main Nodes=g[0-3] Default=YES MaxTime=60 State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime={grace}
PartitionName=urgent Nodes=g[0-3] MaxTime=60 State=UP PriorityTier=10 PreemptMode=OFF
PartitionName=uneven Nodes=g0,h0 MaxTime=60 State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime={grace}
PartitionName=cpu Nodes=c[0-1] MaxTime=60 State=UP
"""


def first_job() -> int:
    """All clusters of this machine share /tmp, where programs tell jobs apart by their numbers."""
    return 1 + secrets.randbelow(60_000_000)


def write_files(folder: pathlib.Path):
    for name in ("etc", "state", "munge"):
        (folder / name).mkdir(parents=True)
    (folder / "key").write_bytes(os.urandom(128))
    (folder / "key").chmod(0o600)
    for number in range(GPUS):  # GPUs are only counted, but SLURM wants character devices
        os.mknod(folder / f"gpu{number}", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    (folder / "etc" / "slurm.conf").write_text(
        CONFIGURATION.format(
            folder=folder,
            kill_wait=KILL_WAIT_SECONDS,
            gpus=GPUS,
            few_gpus=GPUS // 2,
            grace=GRACE_SECONDS,
            first_job=first_job(),
        )
    )
    (folder / "etc" / "gres.conf").write_text(
        f"AutoDetect=off\nNodeName=g[0-3] Name=gpu File={folder}/gpu[0-{GPUS - 1}]\n"
        f"NodeName={SMALL_NODE} Name=gpu File={folder}/gpu[0-{GPUS // 2 - 1}]\n"
    )


def start(cluster: Cluster, folder: pathlib.Path):
    """Returns when slurmctld answers; its nodes may need a moment more."""
    login, nodes = cluster.login, cluster.nodes
    for node in (login, *nodes):
        node.mount(folder / "etc", "/etc/slurm")
        node.mount(folder / "munge", "/run/munge")
    files = [
        f"--{name}-file={folder}/{file}"
        for name, file in (("key", "key"), ("seed", "seed"), ("log", "munged.log"), ("pid", "munged.pid"))
    ]
    login.daemon("munged", "--foreground", "--force", *files, log="munged.out")
    wait_until((folder / "munge" / "munge.socket.2").exists, "munged")
    login.daemon("slurmctld", "-D", log="slurmctld.out")
    for node in nodes:
        node.daemon("slurmd", "-D", log="slurmd.out")
    wait_until(lambda: login.run("scontrol", "ping").returncode == 0, "slurmctld")
