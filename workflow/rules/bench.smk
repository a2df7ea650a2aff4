# Benchmarks that run here.


rule run_benchmark:
    input:
        lambda wildcards: FLOW.inputs("bench", wildcards.cell),
    output:
        update(FLOW.pattern("bench")),
    priority: lambda wildcards: FLOW.order("bench", wildcards.cell)
    resources:
        machine=1,
        attempt=lambda wildcards, attempt: attempt,
    params:
        fingerprint=lambda wildcards: FLOW.fingerprint("bench", wildcards.cell),
    shell:
        FLOW.command("bench")
