# Split, normalise, initial weights and batch order: the same for every framework.


rule prepare_data:
    input:
        lambda wildcards: FLOW.inputs("data", wildcards.cell),
    output:
        update(FLOW.pattern("data")),
    priority: lambda wildcards: FLOW.order("data", wildcards.cell)
    resources:
        machine=1,
        attempt=lambda wildcards, attempt: attempt,
    params:
        fingerprint=lambda wildcards: FLOW.fingerprint("data", wildcards.cell),
    shell:
        FLOW.command("data")
