"""Node tests have nothing to say of their own: the runtimes that run them do."""
