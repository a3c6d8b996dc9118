"""The language server: what the engine finds, in the editor, while people type."""
