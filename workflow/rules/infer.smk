# Runtimes execute exported models.


rule run_inference:
    input:
        lambda wildcards: FLOW.inputs("infer", wildcards.cell),
    output:
        update(FLOW.pattern("infer")),
    priority: lambda wildcards: FLOW.order("infer", wildcards.cell)
    resources:
        machine=1,
        attempt=lambda wildcards, attempt: attempt,
    params:
        fingerprint=lambda wildcards: FLOW.fingerprint("infer", wildcards.cell),
    shell:
        FLOW.command("infer")
