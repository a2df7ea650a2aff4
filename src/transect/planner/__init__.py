"""Stages, replicas and memory of a model under limits, proved optimal."""
