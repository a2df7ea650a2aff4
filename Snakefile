# Entry: reads config, plans the study, includes one rule file per stage.
configfile: "config/config.yaml"


import gc
import sys

# A graph of thousands of jobs is all live objects: collecting them again and again finds nothing
# and costs time in every call (docs/speed.md).
gc.freeze()
gc.set_threshold(100_000, 50, 50)
sys.path.insert(0, f"{workflow.basedir}/src")
from transect.execution.workflow import open_flow

FLOW = open_flow(config)


wildcard_constraints:
    cell=FLOW.cell_pattern,
    environment=r"[A-Za-z0-9_.-]+",


localrules:
    all,


rule all:
    default_target: True
    input:
        f"{FLOW.folder}/report.html",
        # Targets too: a record that was deleted is made again although the report is there.
        FLOW.records(),
        [f"{FLOW.folder}/strict.ok"] if FLOW.strict else [],


include: "workflow/rules/environments.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/export.smk"
include: "workflow/rules/infer.smk"
include: "workflow/rules/hpc.smk"
include: "workflow/rules/report.smk"


onstart:
    FLOW.start(workflow.dag.needrun_jobs())


onsuccess:
    FLOW.finish()


onerror:
    FLOW.finish()
