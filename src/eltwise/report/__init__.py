"""What the referee found, for people: one page that needs nothing else, and a document for the repository."""
