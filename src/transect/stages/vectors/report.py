"""What it did stands in the section of tickets, which the corpus stage brings."""
