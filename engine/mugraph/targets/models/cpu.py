"""No GPU: kernels run in Triton's interpreter, and estimates are made for an H100."""

from dataclasses import replace

from mugraph.targets.models.h100 import H100

TARGETS = (replace(H100, name="cpu", capability=0, figures_of=H100.name),)
