"""Tuners against each other on the operators of OpEvo's paper."""
