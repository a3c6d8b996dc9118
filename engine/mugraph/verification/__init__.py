"""Is this candidate the same function? Random tests over finite fields (Mirage §5), then kernels against float64."""
