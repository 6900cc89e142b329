"""Certificates: guaranteed half-widths of a guard's answers.

A certificate rests on the dependence model and the guard's public parameters alone: it never sees a record. Each
*route* is one theorem with its own assumptions; `certify` evaluates them all and picks the smallest valid tolerance.
"""

from __future__ import annotations

from thresholdout.certificates.certificate import Certificate, certify
from thresholdout.certificates.route import Route

__all__ = ["Certificate", "Route", "certify"]
