//go:build nightly

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/lxd/lxdtest"
)

// Guests and the cloud's services are on the network of the production guide's hosts.
const (
	cloudAddress = "198.51.100.254"
	firstGuest   = 20
)

// cloudHost runs what a cloud without machines has made. Each guest is a container with Debian's
// own systemd and cloud-init. It gets the user data of its server, as a metadata service would hand
// them out, and nothing else: no agent, no document.
type cloudHost struct {
	t   *testing.T
	lxd *lxdtest.LXD

	mu   sync.Mutex
	made int
}

// newCloudHost starts one, on one network with the hosts of a guide.
func newCloudHost(t *testing.T, g *guideHosts) *cloudHost {
	t.Helper()
	h := &cloudHost{t: t, lxd: useLXD(t)}
	makeBridge(t, h.lxd)
	importDebian(t, h.lxd)
	script := `set -e
ip link add "$1up" type veth peer name ground netns "$1net"
ip -n "$1net" link set ground master switch up
ip link set "$1up" master ` + containersBridge + ` up
ip address replace ` + cloudAddress + `/24 dev ` + containersBridge
	if out, err := exec.Command("sh", "-c", script, "sh", g.prefix).CombinedOutput(); err != nil {
		t.Fatalf("join the networks: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "link", "delete", g.prefix+"up").Run() }) // gone with its peer
	return h
}

// importDebian provides the image "debian", a plain Debian with systemd and cloud-init.
func importDebian(t *testing.T, l *lxdtest.LXD) {
	t.Helper()
	if l.Do(http.MethodGet, "/1.0/images/aliases/debian", nil, nil) == nil {
		return
	}
	script := exec.Command("../../scripts/debian-image.sh")
	script.Stderr = os.Stderr
	image, err := script.Output()
	if err == nil {
		err = l.ImportFile("debian", strings.TrimSpace(string(image)))
	}
	if err != nil {
		t.Fatalf("make the image: %v", err)
	}
}

// guestOf is the name of a server's container.
func guestOf(server string) string { return "guest-" + server }

func guestURL(server string) string { return "/1.0/instances/" + guestOf(server) }

// boot makes the guest of a server and starts it.
func (h *cloudHost) boot(server string, userData []byte) error {
	h.mu.Lock()
	address := fmt.Sprintf("198.51.100.%d/24", firstGuest+h.made)
	h.made++
	h.mu.Unlock()
	err := h.lxd.Do(http.MethodPost, "/1.0/instances", map[string]any{
		"name": guestOf(server), "type": "container", "profiles": []string{},
		"source": map[string]string{"type": "image", "alias": "debian"},
		"config": map[string]string{"security.devlxd": "false"}, // no other source of data
		"devices": map[string]map[string]string{
			"root": {"type": "disk", "path": "/", "pool": lxdtest.Pool},
			"eth0": {"type": "nic", "nictype": "bridged", "parent": containersBridge, "name": "eth0"},
		},
	}, nil)
	if err != nil {
		return err
	}
	root := filepath.Join(h.lxd.Dir, "storage-pools", lxdtest.Pool, "containers", guestOf(server), "rootfs")
	seed := filepath.Join(root, "var/lib/cloud/seed/nocloud")
	if err := os.MkdirAll(seed, 0o700); err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"user-data": userData, "meta-data": []byte("instance-id: " + server + "\n"),
		"network-config": fmt.Appendf(nil, "version: 2\nethernets: {eth0: {addresses: [%s]}}\n", address),
	} {
		if err := os.WriteFile(filepath.Join(seed, name), content, 0o600); err != nil {
			return err
		}
	}
	info, err := os.Stat(root)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	err = filepath.WalkDir(filepath.Join(root, "var/lib/cloud"), func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, int(owner.Uid), int(owner.Gid)))
	})
	if err != nil {
		return err
	}
	return h.set(server, "start", false)
}

func (h *cloudHost) set(server, action string, force bool) error {
	return h.lxd.Do(http.MethodPut, guestURL(server)+"/state",
		map[string]any{"action": action, "timeout": 30, "force": force}, nil)
}

// state is LXD's word for what a guest does; "" is none.
func (h *cloudHost) state(server string) string {
	var guest struct{ Status string }
	_ = h.lxd.Do(http.MethodGet, guestURL(server), nil, &guest) // of what is not there
	return guest.Status
}

// end stops a guest, in order unless it has no time for that.
func (h *cloudHost) end(server string) error {
	if h.state(server) != "Running" {
		return nil
	}
	if err := h.set(server, "stop", false); err == nil || h.state(server) == "Stopped" {
		return nil
	}
	return h.set(server, "stop", true)
}

// remove ends a guest at once and leaves nothing of it.
func (h *cloudHost) remove(server string) error {
	if state := h.state(server); state != "" && state != "Stopped" {
		if err := h.set(server, "stop", true); err != nil && h.state(server) != "Stopped" {
			return err
		}
	}
	if h.state(server) == "" {
		return nil
	}
	return h.lxd.Do(http.MethodDelete, guestURL(server), nil, nil)
}

// crash kills a guest's first process, so that the whole guest ends.
func (h *cloudHost) crash(server string) {
	h.t.Helper()
	pid, err := h.lxd.InitPID(guestOf(server))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// freeze stops a guest's processes; the cloud sees it run.
func (h *cloudHost) freeze(server string) {
	h.t.Helper()
	if err := h.set(server, "freeze", false); err != nil {
		h.t.Fatal(err)
	}
}

// guests are the servers that have a guest.
func (h *cloudHost) guests() []string {
	h.t.Helper()
	var all []struct{ Name string }
	if err := h.lxd.Do(http.MethodGet, "/1.0/instances?recursion=1", nil, &all); err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, one := range all {
		if server, ok := strings.CutPrefix(one.Name, "guest-"); ok {
			out = append(out, server)
		}
	}
	return out
}

// poll is how often clouds look at their guests, and guests at their clouds.
const poll = 200 * time.Millisecond
