"""Is a text's use of memory right for every size in a range? The text is read with unknown integers."""
