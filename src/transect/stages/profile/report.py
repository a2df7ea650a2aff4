"""What it measured stands where plans and forecasts are compared with trainings."""

__all__: list[str] = []
