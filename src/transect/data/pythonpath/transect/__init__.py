"""transect, with nothing beside it on the path.

A payload runs in an environment that does not have transect installed. On its PYTHONPATH stands the folder of this
package: the one in which transect is installed holds the driver's libraries too, which would hide the environment's own.
"""

from pathlib import Path

__path__ = [str(Path(__file__).absolute().parents[3])]
__file__ = f"{__path__[0]}/__init__.py"
exec(compile(Path(__file__).read_bytes(), __file__, "exec"))  # noqa: S102 the package's own
