"""Parts of data that lie in files, data bases or clusters: what a question needs of them, counted by their engine."""
