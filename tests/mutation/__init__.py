"""Mutation testing: small changes to the code, each of which some test has to notice.

``make mutation`` runs it; ``python -m tests.mutation --help`` says what else there is. Operators and the parser are
Cosmic Ray's. What is mutated, which tests judge a mutant, and what came out stand in the tables of this folder.
"""
