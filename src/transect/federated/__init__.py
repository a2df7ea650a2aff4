"""Federated learning: clients train on their own rows, a server makes one model of their updates.

Pure functions: who takes part and in which order rows come (`draws`, `partitions`, `timetable`), what becomes of
updates (`aggregations`, `exact_sum`), who computes a client's turn (`engines`), and the rounds themselves (`rounds`).
"""
