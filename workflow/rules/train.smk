# Training cells. `update` keeps a record until its runner finds it stale, so that several cells
# can share one allocation; the runner removes a stale record before it starts the cell.


rule train_cell:
    input:
        lambda wildcards: FLOW.inputs("train", wildcards.cell),
    output:
        update(FLOW.pattern("train")),
    priority: lambda wildcards: FLOW.order("train", wildcards.cell)
    resources:
        machine=1,
        attempt=lambda wildcards, attempt: attempt,
    params:
        fingerprint=lambda wildcards: FLOW.fingerprint("train", wildcards.cell),
    shell:
        FLOW.command("train")


rule train_reference:
    input:
        lambda wildcards: FLOW.inputs("reference", wildcards.cell),
    output:
        update(FLOW.pattern("reference")),
    priority: lambda wildcards: FLOW.order("reference", wildcards.cell)
    resources:
        machine=1,
        attempt=lambda wildcards, attempt: attempt,
    params:
        fingerprint=lambda wildcards: FLOW.fingerprint("reference", wildcards.cell),
    shell:
        FLOW.command("reference")
