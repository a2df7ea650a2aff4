# Benchmarks that run here, and logs of benchmarks that ran elsewhere.


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


rule ingest_logs:
    input:
        lambda wildcards: FLOW.logs(wildcards.cell),
    output:
        update(FLOW.pattern("ingest")),
    priority: lambda wildcards: FLOW.order("ingest", wildcards.cell)
    resources:
        machine=1,
        attempt=lambda wildcards, attempt: attempt,
    params:
        fingerprint=lambda wildcards: FLOW.fingerprint("ingest", wildcards.cell),
    shell:
        FLOW.command("ingest")
