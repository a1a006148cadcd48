"""Sluice against its peers on PostgreSQL: see README.md. Each peer is one module with PEER, and a folder of the
same name with its driver and its locked versions."""
