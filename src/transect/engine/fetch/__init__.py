"""`transect fetch-data`: published data sets, with their licence, by the user's own token, held to their checksums."""
