"""What the service keeps beside the ledger, in the same database: keys, holdouts, submissions, refused requests."""
