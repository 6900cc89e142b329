"""Parts of data in files, data bases or clusters, which an engine counts for queries."""
