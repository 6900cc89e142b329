"""What a guard can be asked for: metrics, and statistics that are no means."""
