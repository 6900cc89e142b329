"""How much wider the mean of dependent records varies than that of independent ones."""
