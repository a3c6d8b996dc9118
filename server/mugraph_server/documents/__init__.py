"""What the editor shows: the text of its documents, kept equal to the editor's own."""
