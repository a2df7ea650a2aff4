"""Tickets: their formats, the way from text to rows of word numbers, and what classifies them."""
