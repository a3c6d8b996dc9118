"""The μGraphs without sizes that compute a program (Mirage §4): values found forwards, graphs read off backwards."""
