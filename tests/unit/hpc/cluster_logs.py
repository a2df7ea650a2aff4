"""Logs of what stands beside benchmarks on clusters: networks, storage, GPUs, serving, accounting. All numbers are made up."""

from __future__ import annotations

_RULE = "-" * 87 + "\n"

# 4 Mpps of 64 bytes are 256 MB/s; 2^20 bytes each, 25,000 a second, are 25,000 MiB/s.
PERFTEST = f"""\
{_RULE}                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : mlx9_0
 Number of qps   : 2\t\tTransport type : IB
 Connection type : RC\t\tUsing SRQ      : OFF
 TX depth        : 128
 Mtu             : 4096[B]
 Link type       : IB
{_RULE} local address: LID 0x01 QPN 0x0001 PSN 0x000001
{_RULE} #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 64         5000             246.00             244.14\t\t   4.000000
 1048576    5000             25010.00           25000.00\t\t   0.025000
{_RULE}"""
PERFTEST_BOTH = f"""\
{_RULE}                    Send Bidirectional BW Test
{_RULE} #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      1000             0.00               393.216\t\t   0.750000
{_RULE}"""
PERFTEST_LATENCY = f"""\
{_RULE}                    RDMA_Write Latency Test
{_RULE} #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]
Conflicting CPU frequency values detected: 1200.000000 != 3400.000000. CPU Frequency is not max.
 2       1000          1.02           3.25         1.08     \t       1.10        \t0.05   \t\t1.40    \t\t3.25
 4       1000          1.03           3.35         1.09     \t       1.11        \t0.05   \t\t1.41    \t\t3.35
{_RULE}"""
FIO = """\
seq: (g=0): rw=write, bs=(R) 1024KiB-1024KiB, (W) 1024KiB-1024KiB, (T) 1024KiB-1024KiB, ioengine=libaio, iodepth=8
...
fio-3.36
Starting 4 processes
Jobs: 4 (f=4): [W(4)][100.0%][w=500MiB/s][w=500 IOPS][eta 00m:00s]
seq: (groupid=0, jobs=4): err= 0: pid=71: Thu Jan  1 00:00:00 2026
  write: IOPS=500, BW=500MiB/s (524MB/s)(50000MiB/100000msec); 0 zone resets
    slat (usec): min=1, max=2, avg= 1.23, stdev= 0.72

Run status group 0 (all jobs):
  WRITE: bw=500MiB/s (524MB/s), 500MiB/s-500MiB/s (524MB/s-524MB/s), io=50000MiB (52.4GB), run=100000-100000msec

Disk stats (read/write):
  nvme0n1: ios=47/1965, merge=0/0, ticks=635/9419, in_queue=9420, util=99.00%
"""
FIO_JSON = """\
{
  "fio version" : "fio-3.36",
  "time" : "Thu Jan  1 00:00:00 2026",
  "global options" : {
    "rw" : "randread",
    "bs" : "4k"
  },
  "jobs" : [
    {
      "jobname" : "rand",
      "error" : 0,
      "job options" : {
        "name" : "rand",
        "filename" : "/somewhere/file"
      },
      "read" : {
        "io_bytes" : 40960000,
        "bw_bytes" : 4096000,
        "bw" : 4000,
        "iops" : 1000.000000,
        "runtime" : 10000
      },
      "write" : {
        "io_bytes" : 0,
        "bw_bytes" : 0,
        "iops" : 0.000000,
        "runtime" : 0
      }
    }
  ]
}
"""
NVBANDWIDTH = """\
nvbandwidth Version: v0.8
Built from Git version: v0.8

CUDA Runtime Version: 12080
Driver Version: 570.00

Device 0: NVIDIA X1

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0     25.10     24.90

SUM host_to_device_memcpy_ce 50.00

Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    145.10
 1    144.90       N/A

SUM device_to_device_memcpy_read_ce 290.00
"""
NVBANDWIDTH_JSON = """\
{
\t"nvbandwidth" :
\t{
\t\t"CUDA Runtime Version" : 12080,
\t\t"git_version" : "v0.8",
\t\t"testcases" :
\t\t[
\t\t\t{
\t\t\t\t"bandwidth_description" : "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s) ",
\t\t\t\t"bandwidth_matrix" : [ [ "25.1000", "24.9000" ] ],
\t\t\t\t"name" : "host_to_device_memcpy_ce",
\t\t\t\t"status" : "Passed",
\t\t\t\t"sum" : 50.0
\t\t\t},
\t\t\t{
\t\t\t\t"name" : "device_to_device_memcpy_read_ce",
\t\t\t\t"status" : "Waived"
\t\t\t}
\t\t]
\t}
}
"""
# 2 x 8192^3 are 1.0995 TFLOP: 1000 of them in 100 s are 10,995 GFLOP/s.
GPU_BURN = """\
Using compare file: compare.ptx
Burning for 100 seconds.
GPU 0: NVIDIA X1 (UUID: GPU-0)
GPU 1: NVIDIA X1 (UUID: GPU-1)
Initialized device 0 with 8000 MB of memory (7900 MB available, using 7110 MB of it), using FLOATS
Results are 268435456 bytes each, thus performing 25 iterations
50.0%  proc'd: 500 (11010 Gflop/s) - 475 (10990 Gflop/s)   errors: 0 - 0   temps: 60 C - 61 C
\tSummary at:   Thu Jan  1 00:00:50 UTC 2026
100.0%  proc'd: 1000 (11020 Gflop/s) - 975 (10980 Gflop/s)   errors: 0 - 0   temps: 61 C - 62 C
Killing processes with SIGTERM (soft kill)
done

Tested 2 GPUs:
\tGPU 0: OK
\tGPU 1: OK
"""
# One query of 1000 samples in 20 s.
INFERENCE = """\
================================================
MLPerf Results Summary
================================================
SUT name : MadeUpSUT
Scenario : Offline
Mode     : PerformanceOnly
Samples per second: 50.0000
Result is : VALID
  Min duration satisfied : Yes
  Min queries satisfied : Yes
  Early stopping satisfied: Yes

================================================
Additional Stats
================================================
Min latency (ns)                : 30000000
Max latency (ns)                : 20000000000
Mean latency (ns)               : 10000000000
50.00 percentile latency (ns)   : 10000000000

================================================
Test Parameters Used
================================================
samples_per_query : 1000
target_qps : 45
"""
STORAGE = """\
{
    "start": "2026-01-01T00:00:00.000000",
    "num_accelerators": 4,
    "metric": {
        "train_au_percentage": [
            95.0,
            96.0
        ],
        "train_au_mean_percentage": 95.5,
        "train_au_meet_expectation": "success",
        "train_throughput_samples_per_second": [
            101.0,
            99.0
        ],
        "train_throughput_mean_samples_per_second": 100.0,
        "train_io_mean_MB_per_second": 14000.0
    },
    "end": "2026-01-01T01:00:00.000000"
}
"""
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
SEFF = """\
Job ID: 19
Cluster: made-up
User/Group: someone/some
State: COMPLETED (exit code 0)
Nodes: 2
Cores per node: 8
CPU Utilized: 02:00:00
CPU Efficiency: 75.00% of 02:40:00 core-walltime
Job Wall-clock time: 00:10:00
Memory Utilized: 1.20 GB
Memory Efficiency: 3.75% of 32.00 GB
"""
TITAN = """\
[rank0]:[titan] 2026-01-01 00:00:00,466 - root - INFO - Training starts at step 1, with local batch size 4, global batch size 32, sequence length 2048, total steps 20 (warmup 2)
[rank0]:[titan] 2026-01-01 00:00:06,466 - root - INFO - step:  1  loss: 12.2326  grad_norm:  0.5244  memory: 40.50GiB(50.63%)  tps: 180  tflops: 15.50  mfu: 1.57%
[rank0]:[titan] 2026-01-01 00:00:16,466 - root - INFO - step: 10  loss:  9.5000  grad_norm:  1.5000  memory: 40.50GiB(50.63%)  tps: 950  tflops: 209.00  mfu: 21.13%
[rank0]:[titan] 2026-01-01 00:00:26,466 - root - INFO - step: 20  loss:  8.5000  grad_norm:  1.2000  memory: 40.50GiB(50.63%)  tps: 960  tflops: 210.00  mfu: 21.23%
[rank0]:[titan] 2026-01-01 00:00:27,681 - root - INFO - Training completed
"""
FSDP = """\
+ TRAINING_ARGS=('--train_batch_size=1' '--max_steps=3' '--seed=42')
2026-01-01 00:00:00 I [train.py:156] Creating Model
2026-01-01 00:00:06 I [train.py:103] Batch 0 Loss: 11.21702, Speed: 6.10 samples/sec, lr: 0.000006
2026-01-01 00:00:14 I [train.py:103] Batch 1 Loss: 11.20650, Speed: 14.50 samples/sec, lr: 0.000013
2026-01-01 00:00:22 I [train.py:103] Batch 2 Loss: 11.12571, Speed: 15.00 samples/sec, lr: 0.000019
2026-01-01 00:00:30 I [train.py:103] Batch 3 Loss: 10.97558, Speed: 14.75 samples/sec, lr: 0.000025
"""

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
