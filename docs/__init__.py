"""The documentation: its pages, and what makes its gallery and its pictures."""
