"""What the service keeps beside the ledger, in the same database: tokens, holdouts, submissions, refused requests."""
