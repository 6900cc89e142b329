"""A service that listens on this machine while a test runs, with everything that the application has."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import uvicorn

from thresholdout.service.agents.mounted import mounted_server
from thresholdout.service.evaluation import EvaluationService
from thresholdout.service.http.app import make_app
from thresholdout.service.http.uploads import read_upload


@contextmanager
def listening(service: EvaluationService) -> Iterator[str]:
    """Serve in another thread; give the address, and close the service in the end."""
    agents = mounted_server(service, partial(read_upload, limits=service.limits))
    app = make_app(service, routes=[agents.route], running=[agents.running])
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, ws="none", lifespan="on"))
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen(100)
        thread = threading.Thread(target=server.run, args=([bound],), daemon=True)
        thread.start()
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.02)
            assert server.started
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)
