"""Which candidate is fastest on this device: measured in processes of their own, which may hang or die."""
