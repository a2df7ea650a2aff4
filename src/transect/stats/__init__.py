"""Statistics of samples: intervals, noise, comparisons, verdicts, change points."""
