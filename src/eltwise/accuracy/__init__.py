"""How far the functions of runtimes are from the real values, in units in the last place."""
