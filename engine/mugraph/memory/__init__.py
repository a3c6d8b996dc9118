"""What the store keeps between runs, as JSON documents: traces of files, results of search units, times of regions."""
