# A checkout runs its own sources, whichever transect is installed.
import sys

sys.path.insert(0, f"{workflow.basedir}/src")


include: "workflow/Snakefile"


# Snakemake takes none from a file that is included.
workflow.default_target = "all"
