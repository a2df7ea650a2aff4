"""The page of a replication: what became of a published work's claims here, and on the machines of others."""
