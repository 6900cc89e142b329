"""What measurements of the service share: simulated teams, clients that submit, and queues."""
