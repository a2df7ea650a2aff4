# One software environment per folder under envs/, made once per lock hash.


rule make_environment:
    input:
        FLOW.often(lambda wildcards: FLOW.environment_inputs()),
    output:
        # Kept while another study makes it anew: this one's cells may be reading it.
        update(FLOW.environment_stamp()),
    log:
        f"{FLOW.folder}/logs/environments/{{environment}}.log",
    # It needs the network: on a cluster it runs where Snakemake runs.
    localrule: True
    resources:
        machine=1,
        runtime=60,
    params:
        python=FLOW.python,
        call=lambda wildcards: FLOW.environment_call(wildcards.environment),
    shell:
        "TRANSECT_LOG={log:q} {params.python:q} -P -m transect.engine.build_environment"
        " {params.call:q}"
        " --out={output:q}"
