"""NVIDIA H200. Source: NVIDIA's data sheet; copy bandwidth and launch cost as measured (README, "Measured")."""

from mugraph.targets.target import Target

TARGETS = (Target("h200", 90, 132, 232_448, 4.26e6, 790e6, l2=60 << 20, title="an H200", float8=2.0),)
