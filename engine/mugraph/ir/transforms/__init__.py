"""Programs and block graphs as others of the same structure: under other names, at other sizes."""
