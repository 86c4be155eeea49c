"""What Gossamer itself brings, as plugins like any other."""
