# Trained models to ONNX, checked against their framework.


rule export_model:
    input:
        lambda wildcards: FLOW.inputs("export", wildcards.cell),
    output:
        update(FLOW.pattern("export")),
    priority: lambda wildcards: FLOW.order("export", wildcards.cell)
    resources:
        machine=1,
        attempt=lambda wildcards, attempt: attempt,
    params:
        fingerprint=lambda wildcards: FLOW.fingerprint("export", wildcards.cell),
    shell:
        FLOW.command("export")
