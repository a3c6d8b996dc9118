"""From a block graph and its schedule to the tiles of one kernel: axes, nodes, orders, masks, loops, text.

Import from the modules themselves; `mugraph.codegen.lower` calls them in order.
"""
