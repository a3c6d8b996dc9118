"""NVIDIA A100, and Ampere by its figures. Source: NVIDIA's data sheet."""

from dataclasses import replace

from mugraph.targets.target import Target

_A100 = Target("a100", 80, 108, 163_840 + 3_072, 1.9e6, 312e6, l2=40 << 20, title="an A100")

TARGETS = (_A100, replace(_A100, name="sm_80", title=""))
