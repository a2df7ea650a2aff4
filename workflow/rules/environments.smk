# One software environment per folder under envs/, made once per lock hash.


rule make_environment:
    output:
        FLOW.environment_stamp(),
    resources:
        machine=1,
        runtime=60,
    params:
        lock=lambda wildcards: FLOW.lock_hash(wildcards.environment),
    shell:
        "{FLOW.python:q} -m transect.execution.build_environment"
        " --name {wildcards.environment} --system={FLOW.system_file:q} --lock {params.lock}"
        " --out={output:q}"
