"""The measurement of this project beside its peers, against what the machine's memory allows, in one run."""
