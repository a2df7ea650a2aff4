# On a scheduler: one rule for each allocation block, whose runner keeps what still holds. Its
# output is a stamp: Snakemake deletes the declared outputs of a job that fails.

for BLOCK in FLOW.blocks():

    rule:
        name:
            BLOCK.rule
        input:
            FLOW.block_inputs(BLOCK),
        output:
            FLOW.block_stamp(BLOCK),
        resources:
            **FLOW.block_resources(BLOCK),
            attempt=lambda wildcards, attempt: attempt,
        params:
            # Not in the shell line: that is put together when the loop has ended.
            block=BLOCK.id,
            fingerprint=BLOCK.fingerprint,
        shell:
            FLOW.block_command()
