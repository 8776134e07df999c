"""Known ways in which runtimes go wrong, each a named prediction of what comes out instead."""
