"""Parts of data that lie in files, data bases or clusters: what a query needs of them, counted by their engine."""
