"""NVIDIA H100, and Hopper by its figures. Source: NVIDIA's data sheet; launch cost as measured on an H200."""

from dataclasses import replace

from mugraph.targets.target import Target

H100 = Target("h100", 90, 132, 232_448, 3.0e6, 800e6, title="an H100", float8=2.0)

TARGETS = (H100, replace(H100, name="sm_90", title=""))
