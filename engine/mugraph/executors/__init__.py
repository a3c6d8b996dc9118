"""Where the nests of a search are worked on: in this process, in others on this machine, or on a Ray cluster.

What is found is the same everywhere, however many workers there are and whichever of them die on the way.
"""
