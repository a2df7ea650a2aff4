# One software environment per folder under envs/, made once per lock hash.


rule make_environment:
    input:
        FLOW.often(lambda wildcards: FLOW.environment_inputs()),
    output:
        # Kept while another study makes it anew: this one's cells may be reading it.
        update(FLOW.environment_stamp()),
    resources:
        machine=1,
        runtime=60,
    params:
        lock=lambda wildcards: FLOW.lock_hash(wildcards.environment),
    shell:
        "{FLOW.python:q} -m transect.engine.build_environment"
        " --name {wildcards.environment} --results={FLOW.results:q} --system={FLOW.system_file:q} --lock {params.lock}"
        " --out={output:q}"
