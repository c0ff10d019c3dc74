package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// nginxFiles are the files of a group whose workload is nginx, which serves with a certificate of
// its own.
const nginxFiles = `files:
- path: ${dir}/files/nginx.conf
  template: |
    worker_processes 1;
    pid nginx.pid;
    error_log stderr;
    events {}
    http {
      access_log off;
      client_body_temp_path tmp1; proxy_temp_path tmp2; fastcgi_temp_path tmp3; uwsgi_temp_path tmp4; scgi_temp_path tmp5;
      server {
        listen {{.Facts.address}} ssl;
        ssl_certificate tls.crt;
        ssl_certificate_key tls.key;
        location / { return 200 "{{.Facts.instance}}\n"; }
      }
    }
- path: ${dir}/files/tls.crt
  certificate:
    authority: web
    names: ["{{.Facts.instance}}.web.internal", "{{host .Facts.address}}"]
    key: ${dir}/files/tls.key
    bundle: ${dir}/files/ca.crt
    lifetime: 1m
  on_change: reload`

// handshakes shake hands with the TLS server of an instance, as a client that trusts the bundle of
// another one.
type handshakes struct {
	mu     sync.Mutex
	failed []string
	number int
	last   *x509.Certificate
}

func (c *cluster) shakeHands(h *handshakes, id, address, other string) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(c.content(other, "ca.crt"))) {
		return errors.New("the bundle has no certificate")
	}
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	dialer := tls.Dialer{
		Config:    &tls.Config{ServerName: id + ".web.internal", RootCAs: roots},
		NetDialer: &net.Dialer{},
	}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	leaf := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
	h.mu.Lock()
	h.last = leaf
	h.mu.Unlock()
	return conn.Close()
}

// clients makes one handshake after another until the context ends.
func (c *cluster) clients(ctx context.Context, h *handshakes, id, address, other string) {
	for ctx.Err() == nil {
		err := c.shakeHands(h, id, address, other)
		h.mu.Lock()
		h.number++
		if err != nil {
			h.failed = append(h.failed, err.Error())
		}
		h.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (h *handshakes) serial() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last.SerialNumber.String()
}

// A TLS server gets a certificate before it starts, and another one after two thirds of its life,
// while its leader dies; then its authority is exchanged. Through all of it not one handshake
// fails, and no instance is replaced. What its key is, no other file says.
//
// proves FILE-2, FILE-3, DET-13
func TestCertificatesOfATLSServer(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	certificates := t.TempDir()
	authority := filepath.Join(certificates, "workloads/web")
	c.must("pki", "init", "--pki", certificates, "--workloads", "web")
	c.options = []string{"--providers", c.file("providers.yaml", fmt.Sprintf(
		"providers: {process: {process: {dir: %s, agent: [%s], zones: [local]}}}\n"+
			"authorities: {web: {own: {dir: %s, domains: [web.internal], networks: [127.0.0.0/8]}}}\n",
		c.machines, c.agentScript(), authority))}
	for _, id := range []string{"a", "b"} {
		c.startReplica(id)
	}
	c.await("a leader", func() bool {
		return c.h.leader() != "" && len(currentOf[store.Replica](c.h, store.KindReplicas)) == 2
	})
	file := c.groupFile("web", 2, nginxFiles)
	replaceIn(t, file, `[sleep, "100000"]`,
		`[nginx, -e, stderr, -p, "${dir}", -c, "${dir}/files/nginx.conf", -g, "daemon off; user root;"]`)
	c.must("group", "apply", "-f", file, "--wait")
	c.awaitComplete("web", 2)
	ids := c.h.wanted("web")

	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	all := make([]*handshakes, len(ids))
	for i, id := range ids {
		h, address, other := &handshakes{}, c.h.instance(id).Record.Address, ids[1-i]
		all[i] = h
		c.await("the first handshake", func() bool { return c.shakeHands(h, id, address, other) == nil })
		clients.Go(func() { c.clients(ctx, h, id, address, other) })
	}
	defer clients.Wait()
	defer stop()
	renewed := func(what string, do func()) {
		t.Helper()
		before := []string{all[0].serial(), all[1].serial()}
		do()
		c.await(what, func() bool { return all[0].serial() != before[0] && all[1].serial() != before[1] })
	}
	for _, id := range ids {
		f := c.fileReport(id, "tls.crt")
		if f.State != store.FileDelivered || time.Until(f.Ends) > time.Minute {
			t.Errorf("%s reports %+v", id, f)
		}
		if out := c.must("instance", "show", id); !strings.Contains(out, "tls.crt delivered") || !strings.Contains(out,
			"the certificate ends in ") {
			t.Errorf("instance show says\n%s", out)
		}
	}
	renewed("a renewal while the leader dies", func() {
		leader, other, before := c.h.leader(), "a", c.caughtUp()
		if leader == "a" {
			other = "b"
		}
		if err := syscall.Kill(c.replicas[leader].PID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-c.replicas[leader].Ended()
		c.awaitLeader(before, other)
		c.startReplica(leader)
	})

	next := t.TempDir()
	c.must("pki", "init", "--pki", next, "--workloads", "web")
	put := func(from, to string) {
		t.Helper()
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(authority, to), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	count := func(id string) int { return strings.Count(c.content(id, "ca.crt"), "BEGIN CERTIFICATE") }
	put(filepath.Join(next, "workloads/web/ca.crt"), "next.crt")
	c.await("both authorities in the bundles", func() bool { return count(ids[0]) == 2 && count(ids[1]) == 2 })
	renewed("certificates of the next authority", func() {
		put(filepath.Join(authority, "ca.crt"), "old.crt")
		put(filepath.Join(next, "workloads/web/ca.key"), "ca.key")
		put(filepath.Join(next, "workloads/web/ca.crt"), "ca.crt")
		if err := os.Remove(filepath.Join(authority, "next.crt")); err != nil {
			t.Fatal(err)
		}
	})
	if err := os.Remove(filepath.Join(authority, "old.crt")); err != nil {
		t.Fatal(err)
	}
	c.await("the next authority alone in the bundles", func() bool { return count(ids[0]) == 1 && count(ids[1]) == 1 })
	c.await("pki show counting certificates of the next authority alone", func() bool {
		var shown struct {
			Workloads []story.WorkloadAuthority    `json:"workloads"`
			Unissued  []story.UnissuedCertificates `json:"workloads_unissued"`
		}
		if err := json.Unmarshal([]byte(c.must("pki", "show", "-o", "json")), &shown); err != nil {
			t.Fatal(err)
		}
		return len(shown.Workloads) == 1 && shown.Workloads[0].Issued == 2 && shown.Workloads[0].Trust == 1 &&
			len(shown.Workloads[0].Replicas) == 2 && len(shown.Unissued) == 0
	})
	stop()
	clients.Wait()
	for i, h := range all {
		if len(h.failed) > 0 || h.number < 100 {
			t.Errorf("%s: %d of %d handshakes failed: %v", ids[i], len(h.failed), h.number,
				h.failed[:min(3, len(h.failed))])
		}
		t.Logf("%s: %d handshakes", ids[i], h.number)
	}
	c.unreplaced("web", ids)
}
