"""Logs that were read stand beside the benchmarks that ran: no section of their own."""
