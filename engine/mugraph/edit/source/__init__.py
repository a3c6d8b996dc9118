"""Python source files as they are edited: their text, encoding and imports, written whole or not at all."""
