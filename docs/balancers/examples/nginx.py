#!/usr/bin/env python3
"""A load balancer for Leasehold: an upstream of nginx, as a file and a reload. Python 3, no libraries.

    command: [/usr/lib/leasehold/nginx.py]
    config:
      upstream: web
      file: /etc/nginx/leasehold/web.conf      # holds the upstream; include it in http {}
      pid: /run/nginx.pid
      nginx: [nginx]                           # the program and its arguments, such as -c FILE

The file has one server a line. Leasehold's name their instance in a comment; all other lines are left as they are.
A change counts once nginx has loaded it: FILE.loaded then holds the file's hash. docs/balancers/exec.md is the protocol.
"""
import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
import time

MARK = "# leasehold "
# nginx refuses an upstream without servers. This one gets no requests.
EMPTY = "    server 127.0.0.1:9 down; # no traffic: keeps the upstream valid"
LINE = re.compile(r"^\s*server (\S+):(\d+)(?: weight=(\d+))?( down)?; " + MARK + r"(\S+) (\S+) (\S+)$")


class Failure(Exception):
    def __init__(self, code, message, scope=""):
        super().__init__(message)
        self.error = {"code": code, "scope": scope, "message": message}


def bracketed(address):
    return "[%s]" % address if ":" in address else address


class Upstream:
    """The upstream's file, locked until the program ends."""

    def __init__(self, config):
        self.name, self.path, self.pid_file = config["upstream"], config["file"], config["pid"]
        self.nginx = config.get("nginx", ["nginx"])
        self.lock = open(self.path + ".lock", "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        try:
            with open(self.path) as f:
                self.lines = f.read().splitlines()
        except FileNotFoundError:
            self.lines = ["upstream %s {" % self.name, EMPTY, "}"]
        if self.lines[0] != "upstream %s {" % self.name or self.lines[-1] != "}":
            raise Failure("invalid", "the file is not one upstream %s { … } with a server a line" % self.name, self.path)

    def text(self):
        return "\n".join(self.lines) + "\n"

    def hash(self):
        return hashlib.sha256(self.text().encode()).hexdigest()

    def loaded(self):
        """Whether nginx has loaded the file as it is."""
        try:
            with open(self.path + ".loaded") as f:
                return f.read().strip() == self.hash()
        except FileNotFoundError:
            return False

    def master(self):
        """The process that runs. Without it nothing is balanced."""
        try:
            with open(self.pid_file) as f:
                pid = int(f.read())
            os.kill(pid, 0)
            return pid
        except (OSError, ValueError) as e:
            raise Failure("temporary", "nginx does not run: %s" % e, self.pid_file)

    def workers(self):
        """Its workers, and whether each is shutting down: then it only ends what it has under way."""
        master, found = self.master(), {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/stat" % pid) as f:
                    parent = int(f.read().rpartition(") ")[2].split()[1])
                if parent == master:
                    with open("/proc/%s/cmdline" % pid) as f:
                        title = f.read()
                    if "worker process" in title:
                        found[pid] = "shutting down" in title
            except (OSError, IndexError):
                continue  # it ended meanwhile
        return found

    def mine(self, shard, balancer):
        """Number of the line, and member, of each server of the shard."""
        for i, line in enumerate(self.lines):
            m = LINE.match(line)
            if m and (m[5], m[6]) == (shard, balancer):
                yield i, {"instance": m[7], "address": m[1].strip("[]"), "port": int(m[2]), "weight": int(m[3] or 1),
                          "state": "draining" if m[4] else "ready", "health": "unknown"}

    def write(self, path, text):
        with open(path + ".new", "w") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        os.rename(path + ".new", path)

    def apply(self, lines, deadline):
        """Writes the lines and has nginx load them. It is safe to repeat after a death at any point."""
        before, self.lines = self.text(), lines
        if before == self.text() and self.loaded():
            return
        old = self.workers()
        self.write(self.path, self.text())
        test = subprocess.run(self.nginx + ["-t"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if test.returncode != 0:
            self.write(self.path, before)
            raise Failure("invalid", "nginx refuses its configuration: " + test.stdout.decode()[-300:], self.path)
        reload = subprocess.run(self.nginx + ["-s", "reload"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if reload.returncode != 0:
            raise Failure("temporary", "nginx does not reload: " + reload.stdout.decode()[-300:], self.path)
        # New workers are there, and those from before take nothing new.
        while True:
            now = self.workers()
            if any(not ending and pid not in old for pid, ending in now.items()) and all(
                    ending for pid, ending in now.items() if pid in old):
                break
            if time.time() > deadline:
                raise Failure("temporary", "nginx has not loaded the file in time", self.path)
            time.sleep(0.01)
        self.write(self.path + ".loaded", self.hash())

    def add(self, shard, balancer, instance, p, deadline):
        line = "    server %s:%d%s; %s%s %s %s" % (
            bracketed(p["address"]), p["port"], " weight=%d" % p["weight"] if p.get("weight") else "", MARK, shard, balancer, instance)
        others = self.without(shard, balancer, instance)
        self.apply(others[:-1] + [line, "}"], deadline)

    def drain(self, shard, balancer, instance, p, deadline):
        lines = list(self.lines)
        for i, m in self.mine(shard, balancer):
            if (m["instance"], m["address"], m["port"]) == (instance, p["address"], p["port"]) and m["state"] == "ready":
                lines[i] = lines[i].replace("; " + MARK, " down; " + MARK)
        self.apply(lines, deadline)

    def remove(self, shard, balancer, instance, p, deadline):
        self.apply(self.without(shard, balancer, instance, p), deadline)

    def without(self, shard, balancer, instance, place=None):
        """The lines without an instance's, at one place or anywhere."""
        gone = [i for i, m in self.mine(shard, balancer) if m["instance"] == instance and (
            place is None or (m["address"], m["port"]) == (place["address"], place["port"]))]
        return [line for i, line in enumerate(self.lines) if i not in gone]

    def list(self, shard, balancer):
        ending = any(self.workers().values())
        members = [m for _, m in self.mine(shard, balancer)]
        for m in members:
            if not self.loaded():
                m["state"], m["why"] = "disabled", "nginx has not loaded the file"
            if m["state"] == "draining" and not ending:
                m["connections"] = 0  # every worker that could have one has ended
        servers = [line for line in self.lines if line.strip().startswith("server ") and line != EMPTY]
        return {"targets": [{"name": self.name, "members": members, "foreign": len(servers) - len(members)}], "complete": True}


def main():
    request = json.load(sys.stdin)
    shard, balancer, instance = request.get("shard"), request["balancer"], request.get("instance")
    if request["method"] == "describe":
        return {"api": 1, "name": "nginx.py 1", "call_timeout": 30,
                "capabilities": {"named": True, "drain_ends": True, "weights": True}}
    upstream = Upstream(request["config"])
    if request["method"] == "list":
        return upstream.list(shard, balancer)
    calls = {"add": upstream.add, "drain": upstream.drain, "remove": upstream.remove}
    upstream.master()
    # Before Leasehold would end the program, which it does at the deadline of 30 seconds at the latest.
    calls[request["method"]](shard, balancer, instance, request["params"], time.time() + 20)
    return {}


if __name__ == "__main__":
    try:
        print(json.dumps({"result": main()}))
    except Failure as e:
        print(json.dumps({"error": e.error}))
    except PermissionError as e:
        print(json.dumps({"error": {"code": "credentials", "message": str(e)}}))
