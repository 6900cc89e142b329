"""Tables of the service beside the ledger, in the same database: tokens, holdouts, submissions, refused requests."""
