"""The catalog of the ways in which a result is wrong: a slug, one sentence, a family, and what it changes."""
