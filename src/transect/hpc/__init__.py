"""Benchmark logs and the runnable benchmarks that set a study's hardware bounds.

`transect.hpc.ingest` reads logs, `transect.hpc.parsers` holds one file per benchmark and
`transect.hpc.benchmarks` what transect can run itself.
"""
