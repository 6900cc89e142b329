"""Agents that improve a pipeline by trial and error, and rules for what to keep."""
