"""The page, its tables, charts and exports; knows no topic."""
