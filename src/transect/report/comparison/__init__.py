"""Result sets beside each other, and runs over time: as a page, Markdown, JSON and a badge."""
