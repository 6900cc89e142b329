"""The service over HTTP: addresses, bounded uploads, logs and metrics without secrets, and the server.

This package needs the extra ``pip install 'thresholdout[service]'``.
"""
