"""A framework in one file."""

from transect.training.frameworks import FRAMEWORKS
from transect.training.frameworks.numpy_ import NumpyFramework


@FRAMEWORKS.register("extra-framework")
class ExtraFramework(NumpyFramework):
    """numpy under another name."""
