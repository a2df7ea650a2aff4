# Logs of benchmarks that ran elsewhere.


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
