"""The source as it is written: its syntax tree, its definitions and statements, its shape comments."""
