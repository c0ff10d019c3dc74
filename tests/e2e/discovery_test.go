package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// example writes an example of docs/discovery.md to a file, with addresses in place of those it
// has, and returns the file's path.
func (l *laptop) example(language, file string, replace ...string) string {
	l.t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "discovery.md"))
	if err != nil {
		l.t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```"+language+"\n")
	text, _, ends := strings.Cut(rest, "```")
	if !found || !ends || strings.Contains(rest, "```"+language+"\n") {
		l.t.Fatalf("docs/discovery.md has no one example of %s", language)
	}
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			l.t.Fatalf("the example of %s does not name %s", language, replace[i])
		}
	}
	path := filepath.Join(l.dir, file)
	if err := os.WriteFile(path, []byte(strings.NewReplacer(replace...).Replace(text)), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// A real Prometheus finds the instances of a group at a replica, scrapes them, and follows when one
// is replaced.
//
// proves LB-4
func TestPrometheusFindsTheInstances(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	web, own := l.address(), l.address()
	l.startDev("--listen", l.address(), "--http", web)
	l.follow()
	l.await("the group", func() bool { return l.h.complete("demo", 3) })

	config := l.example("yaml", "prometheus.yaml", "127.0.0.1:7421", web)
	l.start("prometheus", l.command("prometheus", "--config.file", config, "--web.listen-address", own,
		"--storage.tsdb.path", filepath.Join(l.dir, "prometheus")))
	// scraped are the instances that Prometheus scrapes with success.
	scraped := func() []string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+own+"/api/v1/targets?state=active",
			http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return nil // it is about to listen
		}
		defer answer.Body.Close()
		var is struct {
			Data struct {
				ActiveTargets []struct {
					Labels map[string]string
					Health string
				}
			}
		}
		if json.NewDecoder(answer.Body).Decode(&is) != nil {
			return nil
		}
		var up []string
		for _, target := range is.Data.ActiveTargets {
			if target.Health == "up" {
				up = append(up, target.Labels["instance"])
			}
		}
		slices.Sort(up)
		return up
	}
	all := func() bool {
		wanted := l.h.wanted("demo")
		slices.Sort(wanted)
		return len(wanted) == 3 && slices.Equal(scraped(), wanted)
	}
	l.await("all instances to be scraped", all)
	victim := l.h.wanted("demo")[0]
	l.signalAgent(victim, syscall.SIGKILL)
	l.await("the one in its place to be scraped instead", func() bool {
		return !slices.Contains(l.h.wanted("demo"), victim) && all()
	})
}

// dig(1) and HAProxy's own resolver find the instances of a group by DNS, and follow when one is
// replaced.
//
// proves LB-4
func TestDNSFindsTheInstances(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	names, web, endpoints := l.address(), l.address(), l.address()
	l.startDev("--listen", l.address(), "--http", "off", "--dns", names, "--xds", endpoints)
	l.follow()
	l.await("the group", func() bool { return l.h.complete("demo", 3) })

	host, port, _ := strings.Cut(names, ":")
	dig := func(args ...string) string {
		p := l.start("cli", l.command("dig", append([]string{"@" + host, "-p", port, "+tries=3", "+time=5"}, args...)...))
		l.waitEnd(p)
		if p.ExitCode() != 0 {
			t.Fatalf("dig %v: exit %d: %s", args, p.ExitCode(), p.stdout.String())
		}
		return p.stdout.String()
	}
	// listed are the instances that an answer names.
	listed := func(args ...string) []string {
		var all []string
		for line := range strings.Lines(dig(append(args, "+short")...)) {
			if fields := strings.Fields(line); len(fields) == 4 {
				id, _, _ := strings.Cut(fields[3], ".")
				all = append(all, id)
			}
		}
		slices.Sort(all)
		return all
	}
	// served are the instances that answer through HAProxy.
	served := func() []string {
		seen := map[string]bool{}
		for range 12 {
			text, ok := l.fetch("http://" + web + "/")
			id, begins := strings.CutPrefix(text, "hello from ")
			if !ok || !begins {
				return nil
			}
			id, _, _ = strings.Cut(id, ",")
			seen[id] = true
		}
		var all []string
		for id := range seen {
			all = append(all, id)
		}
		slices.Sort(all)
		return all
	}
	wanted := func() []string {
		all := l.h.wanted("demo")
		slices.Sort(all)
		return all
	}
	l.await("all instances by SRV", func() bool {
		return len(wanted()) == 3 && slices.Equal(listed("_demo._tcp.default.leasehold", "SRV"), wanted())
	})
	for _, c := range []struct{ query, has string }{
		{"demo.default.leasehold A", "status: NOERROR"},
		{"demo.default.leasehold A", "IN A 127.0.0.1"},
		{"demo.default.leasehold A", "flags: qr aa rd;"},
		{"+tcp demo.default.leasehold SRV", "demo.default.leasehold."},
		{"+noedns demo.default.leasehold SRV", "ANSWER: 3, AUTHORITY: 0, ADDITIONAL: 3"},
		{"demo.default.leasehold AAAA", "status: NOERROR"},
		{"demo.default.leasehold AAAA", "ANSWER: 0, AUTHORITY: 1"},
		{"nosuch.default.leasehold A", "status: NXDOMAIN"},
		{"example.org A", "status: REFUSED"},
		{"default.leasehold AXFR", "Transfer failed"},
		{wanted()[1] + ".demo.default.leasehold A", "IN A 127.0.0.1"},
	} {
		if said := dig(strings.Fields(c.query)...); !strings.Contains(strings.Join(strings.Fields(said), " "), c.has) {
			t.Errorf("dig %s does not say %q:\n%s", c.query, c.has, said)
		}
	}
	if n := l.endpoints(endpoints, "demo"); n != 3 {
		t.Errorf("xDS tells %d endpoints", n)
	}

	haproxy := "haproxy"
	if _, err := os.Stat("/usr/sbin/haproxy"); err == nil {
		haproxy = "/usr/sbin/haproxy"
	}
	config := l.example("haproxy", "haproxy.cfg", "127.0.0.1:5353", names, "127.0.0.1:8080", web)
	l.start("haproxy", l.command(haproxy, "-db", "-f", config))
	l.await("all instances to be served by HAProxy", func() bool { return slices.Equal(served(), wanted()) })
	victim := wanted()[0]
	l.signalAgent(victim, syscall.SIGKILL)
	l.await("the one in its place to be served instead", func() bool {
		return !slices.Contains(l.h.wanted("demo"), victim) && len(wanted()) == 3 &&
			slices.Equal(listed("_demo._tcp.default.leasehold", "SRV"), wanted()) && slices.Equal(served(), wanted())
	})
}

// endpoints asks for a group by xDS, and returns how many endpoints it has.
func (l *laptop) endpoints(address, group string) (n int) {
	l.t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		l.t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(l.t.Context(), longest)
	defer cancel()
	stream, err := endpointservice.NewEndpointDiscoveryServiceClient(conn).StreamEndpoints(ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := stream.Send(&discovery.DiscoveryRequest{ResourceNames: []string{group}}); err != nil {
		l.t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		l.t.Fatal(err)
	}
	for _, packed := range answer.Resources {
		var is endpoint.ClusterLoadAssignment
		if err := packed.UnmarshalTo(&is); err != nil {
			l.t.Fatal(err)
		}
		for _, zone := range is.Endpoints {
			n += len(zone.LbEndpoints)
		}
	}
	return n
}

// fetch gets a page; false: no answer, or one other than 200.
func (l *laptop) fetch(url string) (string, bool) {
	l.t.Helper()
	r, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		l.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", false
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err == nil && answer.StatusCode == http.StatusOK
}
