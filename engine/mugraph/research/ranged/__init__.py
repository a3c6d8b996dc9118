"""One kernel for a range of sizes beside kernels that are made for one size each."""
