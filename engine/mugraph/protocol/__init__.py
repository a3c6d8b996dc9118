"""What the language server and the engine say to each other. Imports nothing of the engine, neither torch nor triton.

The server starts an engine, `python -m mugraph.worker` or any command that ends in it (`ssh box python -m
mugraph.worker`), and speaks with it over its standard input and output: one message a line, each a JSON object whose
first key is "type" (`codec`). The engine's standard error is its log. What is said, and in which order, is in
`messages`.
"""

from mugraph.protocol.codec import Decoder, Unreadable, encode
from mugraph.protocol.messages import PROTOCOL

__all__ = ["PROTOCOL", "Decoder", "Unreadable", "encode"]
