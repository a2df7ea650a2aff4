# One rule for each stage, the same with every profile: its wildcard is an allocation block, whose
# runner keeps what still holds. Its output is a stamp: Snakemake deletes the declared outputs of a
# job that fails.

for RULE in FLOW.rules():

    rule:
        name:
            RULE
        input:
            FLOW.often(lambda wildcards, rule=RULE: FLOW.inputs(rule, wildcards.block)),
            # What has to be there and may be newer: a prediction of what this rule's jobs measure.
            waits=ancient(
                FLOW.often(
                    lambda wildcards, rule=RULE: FLOW.waits(rule, wildcards.block)
                )
            ),
        output:
            FLOW.pattern(RULE),
        priority: FLOW.often(lambda wildcards, rule=RULE: FLOW.order(rule, wildcards.block))
        resources:
            **FLOW.resources(RULE),
            machine=1,
            attempt=FLOW.often(lambda wildcards, attempt: attempt),
        params:
            # Not in the shell line itself: that is put together when the loop has ended.
            group=RULE,
            state=FLOW.often(
                lambda wildcards, rule=RULE: FLOW.state(rule, wildcards.block)
            ),
        shell:
            FLOW.command()
