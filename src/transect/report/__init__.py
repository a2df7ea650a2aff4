"""The report of one study: findings, charts and tables in one HTML file."""
