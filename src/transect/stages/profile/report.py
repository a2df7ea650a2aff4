"""What it measured stands where plans and forecasts are compared with trainings."""
