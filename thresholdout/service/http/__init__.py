"""The service over HTTP: addresses, uploads within limits, logs and numbers without secrets, and a server that runs it.

Whatever is here needs the extra, ``pip install 'thresholdout[service]'``.
"""
