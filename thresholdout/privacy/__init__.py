"""Privacy of learners that see the records themselves: accounting, learners, audits."""
