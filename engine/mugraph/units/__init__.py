"""From a region to search units: which of its calls one kernel may compute, and their tensor programs."""
