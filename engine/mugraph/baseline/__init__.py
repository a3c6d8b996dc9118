"""What PyTorch would run for recorded calls, and how long that takes: what an estimate is compared with."""
