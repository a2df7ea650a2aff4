"""Programs that measure a bound with numpy: `python -m transect.hpc.probes.NAME`."""
