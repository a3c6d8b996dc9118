"""Device models, a file each; its TARGETS are the device, and the architecture that its figures stand for, if any."""
