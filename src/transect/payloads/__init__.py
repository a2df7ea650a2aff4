"""What the processes of cells do, a module for each stage: `python -m transect.payloads` starts any of them.

A payload is a function `(spec, folders, out) -> result`: the plan of its cell, the folders of the cells that it takes
something from, by role, and its own folder. It runs in its cell's environment, which has numpy and pydantic.
"""
