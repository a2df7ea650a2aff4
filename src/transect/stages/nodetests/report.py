"""Node tests have nothing to say of their own: the runtimes that run them do."""

__all__: list[str] = []
