"""Puts the page of docs/train-in-the-browser and what it needs into one folder, and serves it."""
