"""The training worker: datasets, workloads, frameworks and strategies, one file each.

Must import in every framework environment: the standard library, pydantic and numpy only.
"""
