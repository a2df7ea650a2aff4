# Entry: reads config, plans the study, includes one rule file per stage.
configfile: "config/config.yaml"


# What `snakemake --report FILE.html` says first.
report: "workflow/report/workflow.rst"


import gc
import sys

# A graph of thousands of jobs is all live objects: collecting them again and again finds nothing
# and costs time in every call (docs/speed.md).
gc.freeze()
gc.set_threshold(100_000, 50, 50)
sys.path.insert(0, f"{workflow.basedir}/src")
from transect.adapters.snakemake.main_flow import open_flow

FLOW = open_flow(config, workflow)


wildcard_constraints:
    block=FLOW.block_pattern,
    environment=r"[A-Za-z0-9_.@-]+",


# Networked, short or reading only: on a cluster these run where Snakemake runs.
localrules:
    all,
    make_environment,
    make_report,
    check_strict,


workflow.localrules(*FLOW.local_rules())


rule all:
    default_target: True
    input:
        [f"{FLOW.folder}/{name}" for name in ("report.html", "summary.json")],
        # A function: Snakemake does not know sooner whether this is a dry run.
        lambda wildcards: FLOW.targets(),
        [f"{FLOW.folder}/strict.ok"] if FLOW.strict else [],


include: "workflow/rules/environments.smk"
include: "workflow/rules/blocks.smk"
include: "workflow/rules/report.smk"


onstart:
    FLOW.start(workflow.dag.needrun_jobs())


onsuccess:
    FLOW.finish()


onerror:
    FLOW.fail()
