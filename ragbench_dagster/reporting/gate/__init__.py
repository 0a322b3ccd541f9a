"""gate[D]: pass, fail or inconclusive, by the definitions of docs/deciding.md."""
