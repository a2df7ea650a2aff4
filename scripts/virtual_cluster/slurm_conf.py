"""Writes the configuration of Slurm. Each line that is not obvious says why it is there."""

from __future__ import annotations

from .options import CONTROL, LOGIN, Link, Options
from .state import Folder

CLUSTER_NAME = "transect"


def slurm_conf(folder: Folder, options: Options) -> str:
    """Return slurm.conf."""
    login = options.address(options.control)
    nodes = "\n".join(
        f"NodeName={node.name} NodeAddr={options.address(options.control, node)}"
        f" CPUs={options.cpus} RealMemory={options.memory_mb}" + (f" Gres=gpu:fake:{node.gpus}" if node.gpus else "")
        for node in options.all_nodes
    )
    cpu = ",".join(node.name for node in options.all_nodes if not node.gpus)
    gpu = ",".join(node.name for node in options.all_nodes if node.gpus)
    limits = f"DefaultTime=5 MaxTime={options.max_time_min} DefMemPerCPU=100 State=UP"
    partitions = f"PartitionName=cpu Nodes={cpu} Default=YES {limits}"
    if gpu:
        partitions += f"\nPartitionName=gpu Nodes={gpu} {limits}"
    accounting = "AccountingStorageType=accounting_storage/none"
    if options.accounting:
        accounting = f"""\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={LOGIN}
AccountingStoragePort=6819
# Where munged listens: this, and not AuthInfo, is what the way to slurmdbd uses.
AccountingStoragePass={folder.munge_socket}
AccountingStorageTRES=gres/gpu
# An unknown account is refused at sbatch, as on a real cluster.
AccountingStorageEnforce=associations"""
    return f"""\
ClusterName={CLUSTER_NAME}
SlurmctldHost={LOGIN}({login})
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder.path}/state
SlurmdSpoolDir={folder.path}/spool/%n
# The host's /tmp is every node's /tmp; here each node keeps PMIx sockets, which would collide.
TmpFS={folder.path}/spool/%n
SlurmctldPidFile={folder.run}/slurmctld.pid
SlurmdPidFile={folder.run}/slurmd-%n.pid
SlurmctldLogFile={folder.log}/slurmctld.log
SlurmdLogFile={folder.log}/slurmd-%n.log

AuthType=auth/munge
CredType=cred/munge
# A requeued job is held until its old credential expires: 120 s by default. Not much less: a step
# whose launch takes longer on a busy machine fails.
AuthInfo=cred_expire=60,socket={folder.munge_socket}

SwitchType=switch/none
# Programs without MPI must not need a PMI; those with it ask: srun --mpi=pmix.
MpiDefault=none
# Neither cgroups nor the rights to make them are needed.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
# Nodes count as large as declared here, not as large as the machine that they share.
SlurmdParameters=config_overrides
GresTypes=gpu

# Without cgroups, sampling is what makes memory limits act.
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill

# A node whose power comes back serves again by itself.
ReturnToService=2
# A dead node shows within a minute. Daemons of a busy machine answer late: what they were
# asked is not lost for it.
SlurmctldTimeout=60
SlurmdTimeout=40
MessageTimeout=60
TCPTimeout=10
KillWait=2
UnkillableStepTimeout=120
# squeue and scontrol must know a finished job for longer than a workflow polls.
MinJobAge=600
JobRequeue=1
# Workflow engines keep their job's name in the comment, and ask sacct for it.
AccountingStoreFlags=job_comment
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0
{accounting}

{nodes}
{partitions}
"""


def gres_conf(folder: Folder, options: Options) -> str:
    """Return gres.conf: one character device per fake GPU."""
    return "".join(
        f"NodeName={node.name} Name=gpu Type=fake File={folder.device(node, gpu)}\n"
        for node in options.all_nodes
        for gpu in range(node.gpus)
    )


def cgroup_conf() -> str:
    """Return cgroup.conf."""
    return (
        "# No plug-in here uses cgroups, but slurmd ends when it cannot tell their version.\nCgroupPlugin=cgroup/v1\n"
    )


def slurmdbd_conf(folder: Folder) -> str:
    """Return slurmdbd.conf; where MariaDB listens is told by MYSQL_UNIX_PORT."""
    return f"""\
AuthType=auth/munge
AuthInfo=socket={folder.munge_socket}
DbdHost={LOGIN}
DbdPort=6819
SlurmUser=root
StorageType=accounting_storage/mysql
StorageUser=root
StorageLoc=slurm_acct_db
LogFile={folder.log}/slurmdbd.log
PidFile={folder.run}/slurmdbd.pid
"""


def hosts(options: Options) -> str:
    """Return /etc/hosts: n1 on the control link, n1-NAME on the link NAME."""

    def lines(link: Link) -> list[str]:
        suffix = "" if link.name == CONTROL else f"-{link.name}"
        return [f"{options.address(link, node)} {node.name}{suffix}" for node in options.all_nodes]

    rows = ["127.0.0.1 localhost", f"{options.address(options.control)} {LOGIN}"]
    for link in options.all_links:
        rows += lines(link)
    return "\n".join(rows) + "\n"


def write(folder: Folder, options: Options) -> None:
    """Write all files into the folder that is seen as /etc/slurm."""
    (folder.etc / "slurm.conf").write_text(slurm_conf(folder, options))
    (folder.etc / "gres.conf").write_text(gres_conf(folder, options))
    (folder.etc / "cgroup.conf").write_text(cgroup_conf())
    (folder.etc / "hosts").write_text(hosts(options))
    database = folder.etc / "slurmdbd.conf"
    database.write_text(slurmdbd_conf(folder))
    database.chmod(0o600)  # slurmdbd refuses a file that others can read
