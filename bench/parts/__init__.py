"""The parts of bench/run. Each measures one kind of thing and has: NAME, scenarios(), run(), table()
and WHAT, a line or two on what its figures mean."""
