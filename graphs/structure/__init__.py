"""Graphs and tables in integers: layouts, elimination orders, separators, spanning forests."""
