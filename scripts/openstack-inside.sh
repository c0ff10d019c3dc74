#!/usr/bin/env bash
# Runs in the directory that scripts/openstack.sh made, in namespaces of its own, where all ports are free.
#
#   setup   writes the configuration, makes the databases, the catalog, a project, a user, a flavor and an image
#   run     starts all services, prints the directory with their sockets, and runs until its standard input ends
set -euo pipefail
export LC_ALL=C.UTF-8 HOME=/root
log=/var/log/leasehold
sockets=/run/leasehold
public=cloud.example # the host in the catalog, for clients outside

await() { # what, how many tenths of a second, command…
	local what=$1 tenths=$2
	shift 2
	for _ in $(seq "$tenths"); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	echo "error: $what did not come up in $((tenths / 10)) s" >&2
	exit 1
}

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

base() {
	ip link set lo up
	mkdir -p "$log" "$sockets" /run/mysqld /var/lib/glance/images /var/lib/nova/instances
	rm -f "$sockets"/*
	chown mysql:mysql /run/mysqld
	mariadbd --user=mysql --bind-address=127.0.0.1 --skip-log-bin >"$log/mariadb" 2>&1 &
	mkdir -p /run/rabbitmq
	chown -R rabbitmq:rabbitmq /run/rabbitmq /var/lib/rabbitmq /var/log/rabbitmq
	echo "127.0.0.1 localhost $public" >/etc/hosts
	RABBITMQ_NODENAME=rabbit@localhost rabbitmq-server >"$log/rabbitmq" 2>&1 &
	await MariaDB 600 mariadb -e 'SELECT 1'
	await RabbitMQ 1200 listens 5672
}

# api serves a WSGI program by its port, for the other services, and by a socket, for us. Each process has one thread:
# Nova's use of eventlet hangs with more.
api() { # name port program
	uwsgi --plugin python3 --http-socket "127.0.0.1:$2" --http-socket "$sockets/$1.sock" --chmod-socket=666 \
		--wsgi-file "$3" --processes 4 --enable-threads --master --die-on-term --lazy-apps --buffer-size 65535 \
		--add-header 'Connection: close' >"$log/$1" 2>&1 &
}

neutron() {
	cat >/neutron.py <<'PYTHON'
import json

def application(request, start):
    kind = request["PATH_INFO"].rstrip("/").split("/")[-1]
    start("200 OK", [("Content-Type", "application/json")])
    return [json.dumps({kind.replace("-", "_"): []}).encode()]
PYTHON
	api neutron 9696 /neutron.py
}

configure() {
	mkdir -p /etc/keystone /etc/glance /etc/placement /etc/nova
	cp -r /usr/share/glance-common/. /etc/glance/
	cp /usr/share/nova-common/api-paste.ini /etc/nova/
	local auth='auth_type = password
auth_url = http://127.0.0.1:5000/v3
www_authenticate_uri = http://127.0.0.1:5000/v3
username = admin
password = secret
project_name = admin
user_domain_name = Default
project_domain_name = Default
region_name = RegionOne'
	local db=mysql+pymysql://leasehold:secret@127.0.0.1
	cat >/etc/keystone/keystone.conf <<CONF
[database]
connection = $db/keystone
[token]
provider = fernet
CONF
	cat >/etc/glance/glance-api.conf <<CONF
[DEFAULT]
enabled_backends = files:file
[database]
connection = $db/glance
[keystone_authtoken]
$auth
[paste_deploy]
flavor = keystone
[glance_store]
default_backend = files
[files]
filesystem_store_datadir = /var/lib/glance/images
CONF
	cat >/etc/placement/placement.conf <<CONF
[api]
auth_strategy = keystone
[keystone_authtoken]
$auth
[placement_database]
connection = $db/placement
CONF
	cat >/etc/nova/nova.conf <<CONF
[DEFAULT]
compute_driver = fake.FakeDriver
transport_url = rabbit://guest:guest@127.0.0.1:5672/
my_ip = 127.0.0.1
host = localhost
state_path = /var/lib/nova
enabled_apis = osapi_compute
[api_database]
connection = $db/nova_api
[database]
connection = $db/nova
[keystone_authtoken]
$auth
[service_user]
$auth
[placement]
$auth
[glance]
$auth
[neutron]
$auth
[cinder]
$auth
[vnc]
enabled = false
[quota]
instances = -1
cores = -1
ram = -1
[oslo_concurrency]
lock_path = /run/leasehold
[scheduler]
discover_hosts_in_cells_interval = 5
CONF
}

setup() {
	configure
	base
	mariadb -e "CREATE USER IF NOT EXISTS leasehold@'127.0.0.1' IDENTIFIED BY 'secret'; CREATE USER IF NOT EXISTS leasehold@localhost IDENTIFIED BY 'secret'"
	local name
	for name in keystone glance placement nova nova_api nova_cell0; do
		mariadb -e "DROP DATABASE IF EXISTS $name; CREATE DATABASE $name; GRANT ALL ON $name.* TO leasehold@'127.0.0.1'; GRANT ALL ON $name.* TO leasehold@localhost"
	done
	getent passwd keystone >/dev/null || useradd --system keystone
	install -d -o keystone -g keystone /etc/keystone/fernet-keys /etc/keystone/credential-keys /var/log/keystone
	keystone-manage db_sync
	keystone-manage fernet_setup --keystone-user root --keystone-group root
	keystone-manage credential_setup --keystone-user root --keystone-group root
	keystone-manage bootstrap --bootstrap-password secret --bootstrap-public-url "http://$public:5000/v3" \
		--bootstrap-internal-url "http://$public:5000/v3" --bootstrap-admin-url "http://$public:5000/v3" --bootstrap-region-id RegionOne
	python3 -c 'from glance.cmd.manage import main; main()' db_sync
	placement-manage db sync
	local nova="from nova.cmd.manage import main; main()"
	python3 -c "$nova" api_db sync
	python3 -c "$nova" cell_v2 map_cell0
	python3 -c "$nova" cell_v2 create_cell --name cell1 || true # it is there
	python3 -c "$nova" db sync
	keystone
	administrator catalog
	services
	administrator things
	halt
}

# administrator makes what an administrator makes: the catalog and a user, or a flavor and an image.
administrator() {
	python3 - "$1" "$public" <<'PYTHON'
import sys

import requests

identity = "http://127.0.0.1:5000/v3"
scope = {"project": {"name": "admin", "domain": {"name": "Default"}}}
user = {"name": "admin", "password": "secret", "domain": {"name": "Default"}}
login = requests.post(identity + "/auth/tokens", json={"auth": {
    "identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}})
login.raise_for_status()
http = requests.Session()
http.headers["X-Auth-Token"] = login.headers["X-Subject-Token"]

def post(url, body):
    answer = http.post(url, json=body)
    print(url, answer.status_code, answer.text[:300])
    if answer.status_code != 409:
        answer.raise_for_status()
        return answer.json()

if sys.argv[1] == "catalog":
    for kind, name, port in [("image", "glance", 9292), ("placement", "placement", 8778), ("compute", "nova", "8774/v2.1"),
                            ("network", "neutron", 9696)]:
        service = post(identity + "/services", {"service": {"type": kind, "name": name}})["service"]["id"]
        for interface in ("public", "internal", "admin"):
            post(identity + "/endpoints", {"endpoint": {
                "service_id": service, "interface": interface, "url": f"http://{sys.argv[2]}:{port}", "region_id": "RegionOne"}})
    project = post(identity + "/projects", {"project": {"name": "machines", "domain_id": "default"}})["project"]["id"]
    member = post(identity + "/users", {"user": {
        "name": "leasehold", "password": "hunter2", "domain_id": "default", "default_project_id": project}})["user"]["id"]
    role = http.get(identity + "/roles?name=member").json()["roles"][0]["id"]
    http.put(f"{identity}/projects/{project}/users/{member}/roles/{role}").raise_for_status()
else:
    for name, ram in (("m1.small", 128), ("m1.huge", 1 << 30)):
        post("http://127.0.0.1:8774/v2.1/flavors", {"flavor": {"name": name, "ram": ram, "vcpus": 1, "disk": 1}})
    image = post("http://127.0.0.1:9292/v2/images", {
        "name": "debian-12", "disk_format": "raw", "container_format": "bare", "visibility": "public"})["id"]
    http.put(f"http://127.0.0.1:9292/v2/images/{image}/file", data=b"\0" * 1024,
             headers={"Content-Type": "application/octet-stream"}).raise_for_status()
PYTHON
}

keystone() {
	api keystone 5000 /usr/bin/keystone-wsgi-public
	await Keystone 600 listens 5000
}

services() {
	neutron
	api placement 8778 /usr/bin/placement-api
	api glance 9292 /usr/bin/glance-wsgi-api
	api nova 8774 /usr/bin/nova-api-wsgi
	local name
	for name in conductor scheduler compute; do
		python3 -c "from nova.cmd.$name import main; main()" --config-file /etc/nova/nova.conf >"$log/nova-$name" 2>&1 &
	done
	for name in 8778 9292 8774; do await "port $name" 1200 listens "$name"; done
}

# halt lets the database end in order.
halt() {
	mariadb-admin shutdown || true
}

run() {
	began=$(date -u '+%F %T')
	base
	keystone
	services
	# Nova has a host when its service reports.
	await 'a host of Nova' 1800 has_host
	echo "${LEASEHOLD_SHORT:-$sockets}"
	cat >/dev/null # until the other end is closed
	halt
}

# has_host: the fake hypervisor's service has reported since the start. What it reported earlier is in the databases.
has_host() {
	mariadb -N -e "SELECT 1 FROM nova.services WHERE services.binary = 'nova-compute' AND last_seen_up >= '$began'" | grep -q 1 &&
		mariadb -N -e "SELECT 1 FROM nova_api.host_mappings LIMIT 1" | grep -q 1 &&
		mariadb -N -e "SELECT 1 FROM placement.inventories WHERE total > 0 LIMIT 1" | grep -q 1
}

"$1"
