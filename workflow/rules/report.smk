# The report, whatever became of the cells.


rule make_report:
    input:
        FLOW.stamps(),
    output:
        html=report(
            f"{FLOW.folder}/report.html",
            caption="../report/report.rst",
            category="Report",
            labels={"file": "report.html", "what": "the study's report"},
        ),
        table=report(
            f"{FLOW.folder}/records.parquet",
            caption="../report/table.rst",
            category="Data",
            labels={"file": "records.parquet", "what": "all metrics of all cells"},
        ),
        summary=report(
            f"{FLOW.folder}/summary.json",
            caption="../report/summary.rst",
            category="Data",
            labels={"file": "summary.json", "what": "counts, findings, failures"},
        ),
    log:
        f"{FLOW.folder}/logs/report.log",
    localrule: True
    resources:
        machine=1,
    params:
        python=FLOW.python,
        call=f"--folder={FLOW.folder}",
    shell:
        "TRANSECT_LOG={log:q} {params.python:q} -P -m transect.engine.make_report {params.call:q}"


rule check_strict:
    input:
        f"{FLOW.folder}/summary.json",
    output:
        f"{FLOW.folder}/strict.ok",
    log:
        f"{FLOW.folder}/logs/strict.log",
    localrule: True
    params:
        python=FLOW.python,
    shell:
        "TRANSECT_LOG={log:q} {params.python:q} -P -m transect.adapters.snakemake.strict --summary={input:q} --out={output:q}"
