"""The language server (issue: after first light)."""
