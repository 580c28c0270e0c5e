"""A backend as authors wrote it for HOOT01: one thread, and every heartbeat is answered by a heartbeat."""
import json
import sys
import time
import uuid
import zmq

READY, REQUEST, REPLY, HEARTBEAT, DISCONNECT = range(1, 6)
EMPTY, JSON, NAME = 0, 3, b"greeter"
context = zmq.Context()
router, pub = context.socket(zmq.ROUTER), context.socket(zmq.PUB)
router.bind(sys.argv[1])  # tcp://127.0.0.1:5580
pub.bind(sys.argv[2])  # tcp://127.0.0.1:5581


def tool(name, description, properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": description, "input_schema": schema, "read_only": True}


CATALOG = {"protocol": "HOOT01", "accepts_binary": False, "broadcasts": pub.last_endpoint.decode(), "tools": [
    tool("greet", "Greet a person", {"name": {"type": "string"}}),
    tool("wait", "Wait", {"seconds": {"type": "number"}}),
    tool("divide", "Divide a by b", {"a": {"type": "number"}, "b": {"type": "number"}}),
]}


def call(name, arguments, request_id):
    if name == "greet":
        pub.send_json({"type": "progress", "job_id": request_id, "percent": 0.5, "message": "half done"})
        return f"Hello, {arguments['name']}!", {"length": len(arguments["name"])}
    if name == "wait":
        time.sleep(arguments["seconds"])
        return "waited", None
    if name == "divide":
        quotient = arguments["a"] / arguments["b"]
        return str(quotient), {"quotient": quotient}
    raise LookupError(f"no tool {name}")


def reply(body, request_id):
    try:
        request = json.loads(body)
        text, data = call(request["name"], request.get("arguments") or {}, request_id)
        return {"type": "success", "result": {"text": text, "data": data}}
    except Exception as e:
        codes = {KeyError: "invalid_params", TypeError: "invalid_params", LookupError: "tool_not_found"}
        return {"type": "error", "code": codes.get(type(e), "internal_error"), "message": f"{type(e).__name__}: {e}"}


print(router.last_endpoint.decode(), flush=True)
while True:
    frames = router.recv_multipart()
    if len(frames) < 7 or frames[-7] != b"HOOT01":
        continue  # not HOOT01; the frames before it are the address to reply to
    command, request_id, trace = int.from_bytes(frames[-6], "big"), frames[-4], frames[-2]
    if command == REQUEST:
        command, answer = REPLY, reply(frames[-1], str(uuid.UUID(bytes=request_id)))
    elif command in (READY, HEARTBEAT):
        answer = CATALOG if command == READY else None
    else:
        continue  # a Disconnect needs no answer
    content, body = (JSON, json.dumps(answer).encode()) if answer else (EMPTY, b"")
    head = [command.to_bytes(2, "big"), content.to_bytes(2, "big"), request_id]
    router.send_multipart([*frames[:-6], *head, NAME, trace, body])
