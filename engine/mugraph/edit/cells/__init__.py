"""Code of notebooks' cells and of interactive sessions, which stands in no file."""
