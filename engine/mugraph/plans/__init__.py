"""What is to be written for a region: a run of steps, the μGraph they make, and where in the source each comes from."""
