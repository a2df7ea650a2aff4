"""`python -m transect` is the `transect` command."""

from transect.cli.main import run

if __name__ == "__main__":
    run()
