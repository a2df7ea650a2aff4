"""Running one cell to its record, whatever happens; building environments; progress; locks."""
