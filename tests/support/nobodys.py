"""The modules that no cell's fingerprint holds, each with a reason."""

from __future__ import annotations

from transect.domain.paths import ROOT

# What no cell's outcome is a function of, and why an edit there may leave all records as they are.
NO_CELLS_OWN = {
    "__main__.py": "the command line",
    "cli/*": "the command line",
    "report/*": "the report depends on it, and is made again by its own hash",
    "analysis/*": "the report depends on it, and is made again by its own hash",
    "stats/*": "the report depends on it, and is made again by its own hash",
    "planning/*": "what it decides stands in the cell's spec, which is hashed",
    "stages/train/hyperparameters.py": "what it decides stands in the cell, which is hashed",
    "stages/*/stage.py": "what it decides stands in the cell's spec, which is hashed",
    "stages/*/pairs.py": "which cells are compared, and none of them runs otherwise; the block's state has it",
    "stages/infer/grids.py": "what it decides stands in the cell's spec, which is hashed",
    "stages/train/options.py": "what it decides stands in the cell's spec, which is hashed",
    "stages/train/script_plan.py": "what it decides stands in the cell's spec, which is hashed",
    **{
        f"stages/{path.name}": "what it decides stands in the cell's spec, which is hashed"
        for path in (ROOT / "src" / "transect" / "stages").glob("[!_]*.py")
    },
    "planner/auto.py": "what a plan chooses stands in a cell's options",
    "planner/bounds.py": "what a plan chooses stands in a cell's options",
    "planner/machine.py": "what a plan chooses stands in a cell's options",
    "planner/partition.py": "what a plan chooses stands in a cell's options",
    "planner/problem.py": "what a plan chooses stands in a cell's options",
    "domain/claims.py": "what was published and which cells measure it: none of them runs otherwise",
    "domain/counts.py": "what it decides stands in the cell's spec, which is hashed",
    "domain/pairs.py": "which cells are compared, and none of them runs otherwise; the block's state has it",
    "domain/study.py": "what it decides stands in the cell's spec, which is hashed",
    "domain/system.py": "what it decides stands in the cell's spec, which is hashed",
    "domain/until.py": "which repeats run, and none of them otherwise; the block's state has it",
    "domain/strict_yaml.py": "what it decides stands in the cell's spec, which is hashed",
    "domain/inventory.py": "`transect crate` and `transect verify`, which a person calls",
    "adapters/*": "surrounds every payload alike: an edit would run everything again",
    "engine/*": "surrounds every payload alike: an edit would run everything again",
    "measure/busy.py": "looks at the machine during each turn, whatever takes it",
    "measure/guard.py": "looks at the machine before and after each payload, whatever it is",
    "measure/pressure.py": "looks at disks and networks before and after each payload, whatever it is",
    "measure/speed_variables.py": "what a record says of the surroundings",
    "measure/step_daemons.py": "looks at the machine during each payload, whatever it is",
    "measure/watcher.py": "looks at the machine before and after each payload, whatever it is",
    "measure/node_probe.py": "the doctor of clusters",
    "launch/orphans.py": "`transect launch`, which a person calls",
    "launch/supervise.py": "`transect launch`, which a person calls",
    "portable_step/__main__.py": "`transect export-step`, which a person calls",
    "portable_step/factory.py": "`transect export-step` and `transect check-export`, which a person calls",
    "portable_step/check_export.py": "`transect check-export`, which a person calls",
    "portable_step/departure.py": "`transect check-export`, which a person calls",
    "portable_step/faithful.py": "`transect check-export`, which a person calls",
    "hpc/archive.py": "`transect ingest --summary`, which a person calls",
    "hpc/log_paths.py": "the report depends on it, and is made again by its own hash",
    "hpc/log_settings.py": "the report depends on it, and is made again by its own hash",
    "hpc/table.py": "`transect ingest`, which a person calls",
    "text/predict_command.py": "`transect predict`, which a person calls",
}
