"""The service.

POST /api/checkout?items=N   adds up an order; the tax on it is the slow part
GET  /api/search?words=N     ranks the catalogue; other code, to tell requests apart by

Requests go through OpenTelemetry as usual. Which profiler runs beside it is the first argument: see README.md.
"""

import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from . import profiling, tracing
from .catalogue import search
from .checkout import checkout
from .head_sampling import is_chosen


def number(query, name, otherwise):
    """A demonstration needs no more than 100,000 of anything."""
    text = query.get(name, [""])[0]
    return int(text) if text.isdigit() and int(text) <= 100_000 else otherwise


ROUTES = {
    "POST /api/checkout": lambda query: {"total": checkout(number(query, "items", 20))},
    "GET /api/search": lambda query: {"best": search(number(query, "words", 20))},
}


class Handler(BaseHTTPRequestHandler):
    def handle_request(self):
        url = urlsplit(self.path)
        route = f"{self.command} {url.path}"
        if route not in ROUTES:
            return self.answer(404, {"error": f"there is no {route}"})
        with profiling.choose(is_chosen(self.headers)), tracing.request_span(route, self.headers):
            body = ROUTES[route](parse_qs(url.query))
        self.answer(200, body)

    do_GET = do_POST = handle_request

    def answer(self, status, body):
        body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    mode = sys.argv[1] if len(sys.argv) > 1 else "otel"
    provider = tracing.start()
    profiling.start(mode, provider)
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8080"))), Handler)
    for number_of_signal in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number_of_signal, lambda *_: threading.Thread(target=server.shutdown).start())
    print(f"order-service listens on http://127.0.0.1:{server.server_port}, profiler: {mode}", flush=True)
    server.serve_forever(poll_interval=0.1)
    # What is still in memory goes out before the process ends.
    profiling.stop()
    provider.shutdown()


main()
