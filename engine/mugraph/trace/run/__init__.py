"""The run of the user's program: its objects built, its functions instrumented, its PyTorch calls on a tape."""
