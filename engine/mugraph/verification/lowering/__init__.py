"""Whether a tensor program is what its recorded calls compute: both are run on random numbers.

`check` asks; `run` is what the float test's process does, with inputs of `inputs`, calls of `calls`, and the verdict of
`judge`. What would take too long (`work`) is run at smaller sizes (`sizes`).
"""
