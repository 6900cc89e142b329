"""Values and records that come in: checked, hashed, aligned by label."""
