"""Logs of what stands beside benchmarks on clusters: networks, storage, GPUs, serving, accounting. All numbers are made up."""

from __future__ import annotations

from log_scan import made

_RULE = "-" * 87 + "\n"

# 4 Mpps of 64 bytes are 256 MB/s; 2^20 bytes each, 25,000 a second, are 25,000 MiB/s.
PERFTEST = made("perftest")
PERFTEST_BOTH = f"""\
{_RULE}                    Send Bidirectional BW Test
{_RULE} #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      1000             0.00               393.216\t\t   0.750000
{_RULE}"""
PERFTEST_LATENCY = made("perftest-latency")
FIO = made("fio")
FIO_JSON = made("fio-json")
NVBANDWIDTH = made("nvbandwidth")
NVBANDWIDTH_JSON = made("nvbandwidth-json")
# 2 x 8192^3 are 1.0995 TFLOP: 1000 of them in 100 s are 10,995 GFLOP/s.
GPU_BURN = made("gpu-burn")
# One query of 1000 samples in 20 s.
INFERENCE = made("inference")
STORAGE = made("storage")
SACCT = """\
JobID|JobName|Partition|NCPUS|State|ExitCode|Elapsed|Start|End|CPUTime
17|solve|main|8|COMPLETED|0:0|00:10:00|2026-01-01T00:00:00|2026-01-01T00:10:00|01:20:00
17.batch|batch||8|COMPLETED|0:0|00:10:00|2026-01-01T00:00:00|2026-01-01T00:10:00|01:20:00
"""
SACCT_COLUMNS = """\
JobID           JobName  Partition    Account  AllocCPUS      State ExitCode    Elapsed
------------ ---------- ---------- ---------- ---------- ---------- -------- ----------
18                solve       main       root          8  COMPLETED      0:0 1-00:00:10
18.batch          batch                  root          8  COMPLETED      0:0 1-00:00:10
"""
SEFF = made("seff")
TITAN = made("titan")
FSDP = made("fsdp")

# Name -> log, and how many runs it has.
LOGS = {
    "perftest": (PERFTEST, 1),
    "perftest both ways": (PERFTEST_BOTH, 1),
    "perftest latency": (PERFTEST_LATENCY, 1),
    "fio": (FIO, 1),
    "fio json": (FIO_JSON, 1),
    "nvbandwidth": (NVBANDWIDTH, 2),
    "nvbandwidth json": (NVBANDWIDTH_JSON, 1),
    "gpu-burn": (GPU_BURN, 1),
    "mlperf-inference": (INFERENCE, 1),
    "mlperf-storage": (STORAGE, 1),
    "slurm-accounting": (SACCT, 1),
    "slurm-accounting columns": (SACCT_COLUMNS, 1),
    "slurm-accounting seff": (SEFF, 1),
    "dl-training torchtitan": (TITAN, 1),
    "dl-training fsdp": (FSDP, 1),
}

SUPERBENCH_HEAD = """\
STREAM Benchmark
Buffer size(bytes): 4294967296
Number of warm up runs: 10
Number of loops: 40
Check data: Yes

"""


def superbench(gpu: int) -> str:
    text = f'Device {gpu}: "G 100"  8 SMs(10.0)  Memory: 4000MHz x 8192-bit = 8000 GB/s PEAK   ECC is ON\n'
    for kernel, rate in (("COPY", 6000.0), ("SCALE", 6100.0), ("ADD", 7000.0), ("TRIAD", 7100.0)):
        for place, block in enumerate((128, 256)):
            value = rate + 100 * gpu + 20 * place
            text += f"STREAM_{kernel}_double_gpu_{gpu}_buffer_4294967296_block_{block}\t{value:.2f}\t{value / 80:.2f}\n"
    return text + "\n"


SUPERBENCH = SUPERBENCH_HEAD + superbench(0) + superbench(1)
