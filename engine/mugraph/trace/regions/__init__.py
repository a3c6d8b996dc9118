"""From what a run has left to regions: which code each stands for, what it reads, and what must hold for it."""
