"""Shape of the code: sizes, levels of imports, cycles, public names, duplicates, and the files that calls run through.

Run with ``python -m benchmarks.structure``; ``--json FILE`` writes the same as JSON, ``--root DIR`` measures another
checkout. Everything but the paths and the public names is read from the sources, so that nothing of what is counted
depends on where a module lives.
"""
