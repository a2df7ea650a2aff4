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
        log:
            FLOW.log(RULE),
        priority: FLOW.often(lambda wildcards, rule=RULE: FLOW.order(rule, wildcards.block))
        localrule: FLOW.is_local(RULE)
        resources:
            **FLOW.resources(RULE),
            machine=1,
            attempt=FLOW.often(lambda wildcards, attempt: attempt),
        params:
            python=FLOW.python,
            call=FLOW.often(
                lambda wildcards, rule=RULE: FLOW.call(rule, wildcards.block)
            ),
        shell:
            "TRANSECT_LOG={log:q} {params.python:q} -P -m transect.engine.run_block {params.call:q}"
            " --attempt={resources.attempt} --stamp={output:q}"
