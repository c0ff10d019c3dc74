#!/usr/bin/env python3
"""A provider for Leasehold in Python, with nothing but its standard library: machines are containers
of an LXD or Incus on this host. It shows how the protocol of docs/providers/exec.md is kept by way of
an API that works in steps: what is meant is noted at the machine before each step, so that a call
which died half-way is completed by the next one.

  config: {socket: /var/snap/lxd/common/lxd/unix.socket, pool: default, profiles: [default], zone: local}

The image has leasehold-agent, as its /sbin/init or as a service, and its network, from the profiles,
reaches the coordinators. (Leasehold has a provider lxd of its own, which does more.)
"""

import contextlib
import fcntl
import http.client
import json
import os
import re
import socket
import sys
import tempfile
import time
import urllib.parse
import uuid
import zlib

TAG = "user.leasehold-example."
AGENT = "/etc/leasehold/bootstrap.json"


class Failed(Exception):
    """An error with a code of the protocol."""

    def __init__(self, code, message, scope=""):
        super().__init__(message)
        self.answer = {"code": code, "message": message, "scope": scope}


class Unix(http.client.HTTPConnection):
    """HTTP over a socket of this host."""

    def __init__(self, path):
        super().__init__("lxd", timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class LXD:
    def __init__(self, path):
        self.socket = path

    def call(self, method, path, body=None, raw=None, headers=()):
        """One request. What LXD does in the background is waited for."""
        link = Unix(self.socket)
        try:
            link.request(method, path, raw if raw is not None else json.dumps(body), dict(headers))
            reply = json.loads(link.getresponse().read())
        except OSError as e:
            raise Failed("temporary", f"LXD at {self.socket}: {e}")
        finally:
            link.close()
        if reply.get("type") == "async":
            reply = self.call("GET", reply["operation"] + "/wait")
            if reply["status_code"] != 200:
                raise self.error(reply["status_code"], reply.get("err", ""))
            return reply
        if reply.get("type") == "error":
            raise self.error(reply["error_code"], reply["error"])
        return reply["metadata"]

    @staticmethod
    def error(status, text):
        if status == 404:
            return Failed("not_found", text)
        if status == 403:
            return Failed("credentials", text)
        if "quota" in text:
            return Failed("quota", text)
        return Failed("temporary", text)

    def patiently(self, *args, **kw):
        """A call that waits while LXD does something else with the container."""
        for again in range(60):
            try:
                return self.call(*args, **kw)
            except Failed as e:
                if again == 59 or not re.search("busy|matching non-reusable operation", str(e)):
                    raise
                time.sleep(0.2)


class Provider:
    def __init__(self, request):
        self.request = request
        self.config = request["config"]
        self.params = request["params"]
        self.instance = request.get("instance", "")
        self.shard = request.get("shard", "")
        self.name = "lhx-" + self.instance
        self.path = "/1.0/instances/" + urllib.parse.quote(self.name)
        self.lxd = LXD(self.config.get("socket", "/var/lib/lxd/unix.socket"))

    # What a container is, and what we noted at it.

    def find(self):
        """The instance's container, or None. Another shard's is none of ours."""
        try:
            c = self.lxd.call("GET", self.path)
        except Failed as e:
            if e.answer["code"] == "not_found":
                return None
            raise
        if c["config"].get(TAG + "instance") != self.instance:
            raise Failed("invalid", f"container {self.name} exists and is not Leasehold's")
        return c if c["config"].get(TAG + "shard") == self.shard else None

    def note(self, **notes):
        self.lxd.patiently("PATCH", self.path, {"config": {key(k): v for k, v in notes.items()}})

    def set_state(self, action, timeout=30, force=False):
        body = {"action": action, "timeout": timeout, "force": force}
        self.lxd.patiently("PUT", self.path + "/state", body)

    def show(self, c):
        notes, status, why = c["config"], c["status"], ""
        if status == "Running" or status == "Frozen" or status == "Ready":
            state = "running"
        elif status == "Stopped" and notes.get(TAG + "want") == "stopped":
            state = "stopped"
        elif status == "Stopped" and notes.get(TAG + "want") == "running":
            state, why = "crashed", "the container has ended"
        elif status in ("Stopped", "Starting"):
            state = "starting"
        elif status == "Stopping":
            state = "stopping"
        else:
            state, why = "unknown", "LXD says " + status
        return {
            "instance": notes[TAG + "instance"], "shard": notes[TAG + "shard"], "group": notes.get(TAG + "group", ""),
            "zone": notes.get(TAG + "zone", ""), "ref": c["name"], "state": state, "why": why,
            "boot": notes.get("environment.LEASEHOLD_BOOT_ID", ""),
        }

    @contextlib.contextmanager
    def turn(self):
        """Calls for one instance take turns on this host."""
        path = os.path.join(tempfile.gettempdir(), f"leasehold-lxd-{os.getuid()}.lock")
        with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+") as f:
            fcntl.lockf(f, fcntl.LOCK_EX, 1, zlib.crc32(self.instance.encode()))
            yield

    # The methods of the protocol.

    def describe(self):
        return {
            "api": 1, "name": "lxd.py 1", "zones": [self.config.get("zone", "local")], "consistency": 0,
            "call_timeout": 120, "capabilities": {"boots": True, "crashes": True},
            "settings": {
                "type": "object", "additionalProperties": False, "required": ["image"],
                "properties": {
                    "image": {"type": "string", "description": "alias of an image"},
                    "memory": {"type": "string", "description": "such as 512MiB"},
                },
            },
        }

    def create(self):
        if not self.find():
            self.make()
        c = self.find()
        if not c:
            raise Failed("invalid", f"another shard has a machine {self.instance}")
        want = c["config"].get(TAG + "want")
        if not want:  # it has not been started, by this call or one that died
            self.lxd.patiently("POST", self.path + "/files?path=/etc/leasehold", raw=b"", headers={
                "X-LXD-type": "directory", "X-LXD-mode": "0700", "Content-Type": "application/octet-stream"})
            self.lxd.patiently("POST", self.path + "/files?path=" + AGENT, raw=self.params["bootstrap"].encode(), headers={
                "X-LXD-type": "file", "X-LXD-mode": "0600", "Content-Type": "application/octet-stream"})
        if want in (None, "boot"):  # a call that died may have meant to start it
            self.boot(c)
        return self.show(self.find())

    def make(self):
        settings = self.params["settings"]
        config = {key(k): self.params[k] for k in ("group", "zone")}
        config |= {key("shard"): self.shard, key("instance"): self.instance}
        config |= {"user." + k: v for k, v in self.params["tags"].items()}
        if "memory" in settings:
            config["limits.memory"] = settings["memory"]
        devices = {}
        if "pool" in self.config:
            devices["root"] = {"type": "disk", "path": "/", "pool": self.config["pool"]}
        body = {
            "name": self.name, "type": "container", "source": {"type": "image", "alias": settings["image"]},
            "config": config, "devices": devices, "profiles": self.config.get("profiles", ["default"]),
        }
        try:
            self.lxd.patiently("POST", "/1.0/instances", body)
        except Failed as e:
            if "already exists" not in str(e):  # another call was quicker
                raise

    def boot(self, c):
        """Starts a stopped container with a new boot."""
        if c["config"].get(TAG + "want") != "boot":
            self.note(want="boot", boot=str(uuid.uuid4()))
        try:
            self.set_state("start")
        except Failed as e:
            if "already running" not in str(e):
                raise
        self.note(want="running")

    def stop(self):
        c = self.find()
        if c:
            self.note(want="stopped")  # before it ends, so that its end is no crash
            self.end(max(1, int(self.params["timeout"])))
        return {}

    def end(self, timeout):
        """Ends what runs: in order within a time, if there is one, and the hard way after it."""
        for force in (False, True) if timeout else (True,):
            c = self.find()
            if not c or c["status"] == "Stopped":
                return
            try:
                self.set_state("stop", timeout if not force else 30, force)
            except Failed:
                if force and self.find() and self.find()["status"] != "Stopped":
                    raise

    def delete(self):
        if self.find():
            self.note(want="stopped")
            self.end(0)
            try:
                self.lxd.patiently("DELETE", self.path)
            except Failed as e:
                if e.answer["code"] != "not_found":
                    raise
        return {}

    def restart(self):
        c = self.find()
        if not c:
            raise Failed("not_found", f"there is no machine {self.instance}")
        if c["config"].get(TAG + "want") != "boot":  # else a call that died has ended the boot already
            if self.params["boot"] not in ("", c["config"].get("environment.LEASEHOLD_BOOT_ID")):
                return {}
            self.note(want="stopped")
            self.end(20)
            c = self.find()
        self.boot(c)
        return {}

    def list(self):
        which = urllib.parse.quote(f"config.{TAG}shard eq {self.shard}")
        found = self.lxd.call("GET", "/1.0/instances?recursion=1&filter=" + which)
        mine = [c for c in found if c["config"].get(TAG + "shard") == self.shard]
        return {"machines": [self.show(c) for c in mine], "complete": True}


def key(name):
    """Where a note is kept. A boot's name is what the agent sees of it."""
    return "environment.LEASEHOLD_BOOT_ID" if name == "boot" else TAG + name


def main():
    request = json.load(sys.stdin)
    methods = ("describe", "create", "stop", "delete", "restart", "list")
    try:
        if request["method"] not in methods:
            raise Failed("temporary", f"unknown method {request['method']}")
        provider = Provider(request)
        with provider.turn() if provider.instance else contextlib.nullcontext():
            answer = {"result": getattr(provider, request["method"])()}
    except Failed as e:
        answer = {"error": e.answer}
    json.dump(answer, sys.stdout)


main()
