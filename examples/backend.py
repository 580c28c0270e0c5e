"""A backend for Luanette in one file, with pyzmq alone. Copy it and replace the tools.

    backend.py [tcp://127.0.0.1:5580 [tcp://127.0.0.1:5581]]
    luanette upstream add greeter zmq+tcp://127.0.0.1:5580

The main thread owns the sockets and answers heartbeats; tools run on other threads.
With BACKEND_SECRET, a secret key of `luanette backend keygen`, connections are encrypted.
"""
import collections
import json
import os
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import zmq

NAME = b"greeter"
READY, REQUEST, REPLY, HEARTBEAT, DISCONNECT, HEARTBEAT_REPLY = range(1, 7)
EMPTY, JSON = 0, 3
TOOLS = {}  # name -> (function, entry of the catalog)
context = zmq.Context()


def tool(description, **hints):
    """Make a function a tool. Its annotated parameters are the arguments."""
    def add(f):
        types = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}
        properties = {name: {"type": types[kind]} for name, kind in f.__annotations__.items()}
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        TOOLS[f.__name__] = f, {"name": f.__name__, "description": description, "input_schema": schema, **hints}
        return f
    return add


@tool("Greet a person", read_only=True)
def greet(name: str):
    progress(0.5, "half done")
    return f"Hello, {name}!", {"length": len(name)}


@tool("Divide a by b", read_only=True)
def divide(a: float, b: float):
    return str(a / b), {"quotient": a / b}


@tool("Wait for some seconds")
def wait(seconds: float):
    time.sleep(seconds)
    return f"waited {seconds} s", None


# Everything below is the protocol of docs/backends.md.

local = threading.local()


def outgoing():
    """The socket on which this thread hands messages to the main thread."""
    if not hasattr(local, "push"):
        local.push = context.socket(zmq.PUSH)
        local.push.connect("inproc://outgoing")
    return local.push


def progress(fraction, message):
    local.broadcasts += 1
    broadcast = {"type": "progress", "job_id": local.request_id, "percent": fraction, "message": message}
    outgoing().send_multipart([b"broadcast", json.dumps(broadcast).encode()])


def call(body, request_id):
    local.request_id, local.broadcasts = str(uuid.UUID(bytes=request_id)), 0
    return {**outcome(body), "broadcasts": local.broadcasts}


def outcome(body):
    try:
        request = json.loads(body)
        if request["name"] not in TOOLS:
            return {"type": "error", "code": "tool_not_found", "message": f"no tool {request['name']}"}
        text, data = TOOLS[request["name"]][0](**(request.get("arguments") or {}))
        return {"type": "success", "result": {"text": text, "data": data}}
    except (KeyError, TypeError, ValueError) as e:
        return {"type": "error", "code": "invalid_params", "message": f"{type(e).__name__}: {e}"}
    except Exception as e:
        return {"type": "error", "code": "internal_error", "message": f"{type(e).__name__}: {e}"}


def message(frames, command, body=None):
    """The answer to a message: the same address, version, id and trace."""
    content, raw = (EMPTY, b"") if body is None else (JSON, json.dumps(body).encode())
    return [*frames[:-6], command.to_bytes(2, "big"), content.to_bytes(2, "big"), frames[-4], NAME, frames[-2], raw]


def serve(listen, publish):
    router, pub, pull = context.socket(zmq.ROUTER), context.socket(zmq.PUB), context.socket(zmq.PULL)
    for s, endpoint in (router, listen), (pub, publish):
        if "BACKEND_SECRET" in os.environ:
            s.curve_server, s.curve_secretkey = True, os.environb[b"BACKEND_SECRET"]
        s.bind(endpoint)
    pull.bind("inproc://outgoing")
    catalog = {"protocol": "HOOT01", "protocols": ["HOOT01", "HOOT02"], "broadcasts": pub.last_endpoint.decode(),
               "tools": [entry for _, entry in TOOLS.values()]}
    answered = collections.deque(maxlen=64)  # heartbeats of HOOT01: one that comes again is an answer to our answer
    workers = ThreadPoolExecutor(16)
    poller = zmq.Poller()
    poller.register(router, zmq.POLLIN)
    poller.register(pull, zmq.POLLIN)
    print(router.last_endpoint.decode(), flush=True)
    while True:
        for s, _ in poller.poll():
            frames = s.recv_multipart()
            if s is pull:
                kind, *rest = frames
                (pub if kind == b"broadcast" else router).send_multipart(rest)
            elif len(frames) >= 7 and frames[-7] in (b"HOOT01", b"HOOT02"):
                command, old = int.from_bytes(frames[-6], "big"), frames[-7] == b"HOOT01"
                if command == READY:
                    router.send_multipart(message(frames, READY, catalog))
                elif command == HEARTBEAT and not (old and frames[-4] in answered):
                    router.send_multipart(message(frames, HEARTBEAT if old else HEARTBEAT_REPLY))
                    if old:
                        answered.append(frames[-4])
                elif command == REQUEST:
                    workers.submit(lambda f=frames: outgoing().send_multipart(
                        [b"reply", *message(f, REPLY, call(f[-1], f[-4]))]))


if __name__ == "__main__":
    serve(*(sys.argv[1:] + ["tcp://127.0.0.1:5580", "tcp://127.0.0.1:5581"][len(sys.argv) - 1:]))
