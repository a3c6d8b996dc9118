"""Blackwell by the figures of an NVIDIA B200. Sources: NVIDIA's HGX B200 data sheet (8 TB/s, 2.25 PFLOPS of dense
16-bit products, 4.5 of float8 ones), the CUDA programming guide (227 KiB of shared memory for a block of compute
capability 10.0), and what the driver says of one (148 processors, 126.5 MiB of cache: pytorch/ao#4002).

Nothing was measured: that a kernel reaches these rates, and that a launch costs what it does on Hopper, is assumed.
"""

from mugraph.targets.target import Target

TARGETS = (Target("sm_100", 100, 148, 232_448, 8.0e6, 2_250e6, l2=253 << 19, float8=2.0),)
