"""Systems answer, retrieval is scored, judges grade; the ledger keeps every verdict."""
