"""Results that outlive a run: `Store` files what the pipeline found under `region_key`."""

from mugraph.store.results import Store

__all__ = ["Store"]
