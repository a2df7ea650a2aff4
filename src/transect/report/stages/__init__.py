"""What the report says of each stage, a module for one that has something to be said."""
