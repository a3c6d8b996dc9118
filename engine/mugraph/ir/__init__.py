"""What a program is: named axes, tensors, tensor programs, block graphs, schedules and μGraphs.

Import from the modules themselves (`from mugraph.ir.ops import Op`); this package re-exports nothing.
"""
