"""The engine seen from the server: a process that may be slow, hang, die or lie, and never takes the server along."""
