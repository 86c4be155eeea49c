"""What there is: chance, names, texts, sites and what happens to their items."""
