"""Made-up tickets whose best possible accuracy is known: the model, its words and its options."""
