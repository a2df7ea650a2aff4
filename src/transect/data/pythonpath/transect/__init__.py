"""transect, with nothing beside it on the path.

A payload runs in an environment that does not have transect installed. On its PYTHONPATH stands the folder of this
package: the one in which transect is installed holds the driver's libraries too, which would hide the environment's own.
"""

import os

# pythonpath/transect/__init__.py is three folders below the package.
_PACKAGE = os.path.abspath(os.path.join(__file__, *[os.pardir] * 4))
__path__ = [_PACKAGE]
__file__ = os.path.join(_PACKAGE, "__init__.py")
with open(__file__, "rb") as _source:
    exec(compile(_source.read(), __file__, "exec"))
