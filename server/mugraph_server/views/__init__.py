"""What the editor shows. Each view is a function of a source and its region states, and keeps nothing of its own."""
