"""Functions of PyTorch's that add a bias to each channel in a pass of its own over their result."""

WINDOW_DIMS = {
    f"{package}.conv{kind}{dims}d": dims
    for package in ("torch", "torch.nn.functional")
    for kind in ("", "_transpose")
    for dims in (1, 2, 3)
}
"""By name, how many dimensions follow the channels."""
