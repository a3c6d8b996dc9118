"""What the code of one region becomes in the user's file."""
