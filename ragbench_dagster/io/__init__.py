"""Reading what people hand in: files opened safely, JSON Lines and CSV as spreadsheets leave them."""
