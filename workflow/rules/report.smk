# The report, whatever became of the cells.


rule make_report:
    input:
        FLOW.stamps(),
    output:
        html=report(
            f"{FLOW.folder}/report.html",
            caption="../report/report.rst",
            category="report",
        ),
        table=f"{FLOW.folder}/records.parquet",
        summary=f"{FLOW.folder}/summary.json",
    resources:
        machine=1,
    params:
        state=FLOW.report_state(),
    shell:
        "{FLOW.python:q} -m transect.execution.make_report --folder={FLOW.folder:q}"


rule check_strict:
    input:
        f"{FLOW.folder}/summary.json",
    output:
        f"{FLOW.folder}/strict.ok",
    shell:
        "{FLOW.python:q} -m transect.execution.strict --summary={input:q} --out={output:q}"
