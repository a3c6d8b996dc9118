"""The user's file: the edit that lets a kernel take the place of a region's code, and its undoing."""
