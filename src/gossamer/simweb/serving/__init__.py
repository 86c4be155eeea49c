"""How it is reached: the server, its log, TLS, DNS, and the judge of those who came."""
