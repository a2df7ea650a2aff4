"""Stages: a file for each that declares it, or a folder with `stage.py` for one that has more code than that.

The stage folders of plug-in folders belong to this package too, so that a stage from outside of
the repository is written like one of the project's own.
"""

from transect.domain.registry import plugin_folders

_PACKAGE = list(__path__)


def add_plugin_folders() -> None:
    """Find stages in the plug-in folders that are known by now."""
    __path__[:] = [*_PACKAGE, *map(str, plugin_folders())]


add_plugin_folders()
