"""Plans ask the compilers of this machine, once."""

from compilers_asked import compilers_asked

__all__ = ["compilers_asked"]
