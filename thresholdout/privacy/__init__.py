"""What an iterative learner leaks that saw the records itself: accounting, learners, audits."""
