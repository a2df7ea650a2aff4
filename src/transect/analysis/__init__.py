"""Statistics over records: intervals, noise floor, comparisons, scaling and hardware bounds."""
