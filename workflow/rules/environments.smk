# One software environment per folder under envs/, made once per lock hash.


rule make_environment:
    output:
        FLOW.environment_stamp(),
    params:
        lock=lambda wildcards: FLOW.lock_hash(wildcards.environment),
    resources:
        machine=1,
        runtime=60,
    shell:
        "{FLOW.python:q} -m transect.execution.build_environment"
        " --name {wildcards.environment} --out {output:q}"
