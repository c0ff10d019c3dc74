package openstacktest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/leasehold/leasehold/tests/harness"
)

// CatalogHost is the host that the catalog of a real OpenStack names.
const CatalogHost = "cloud.example"

// ports are the services of a real OpenStack, by their ports in its catalog.
var ports = map[string]string{"5000": "keystone", "9292": "glance", "8774": "nova", "9696": "neutron"}

// Real is Keystone, Glance, Placement and Nova of Debian (scripts/openstack.sh). Nova has its fake
// driver: nothing runs in its servers.
type Real struct {
	*harness.Daemon
	http      *http.Client
	token     string
	listeners []net.Listener
	copying   sync.WaitGroup
}

// StartReal starts it. If another test has one, it waits for that to end.
func StartReal() (*Real, error) {
	daemon, err := harness.StartDaemon("OpenStack", "scripts/openstack.sh", "run")
	if err != nil {
		return nil, err
	}
	r := &Real{Daemon: daemon}
	r.http = &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			service, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return r.Dial(ctx, service)
		},
	}}
	if err := r.login(); err != nil {
		return nil, errors.Join(err, r.Stop())
	}
	return r, nil
}

// Dial connects to a service: keystone, glance, nova or neutron.
func (r *Real) Dial(ctx context.Context, service string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(r.Dir, service+".sock"))
}

// Expose makes the services reachable at an address of this host, at the ports of the catalog.
func (r *Real) Expose(address string) error {
	for port, service := range ports {
		l, err := net.Listen("tcp", net.JoinHostPort(address, port))
		if err != nil {
			return err
		}
		r.listeners = append(r.listeners, l)
		r.copying.Go(func() {
			for {
				client, err := l.Accept()
				if err != nil {
					return // it was closed
				}
				r.copying.Go(func() { r.relay(client, service) })
			}
		})
	}
	return nil
}

// relay passes on what a client and a service say until either ends.
func (r *Real) relay(client net.Conn, service string) {
	defer client.Close()
	server, err := r.Dial(context.Background(), service)
	if err != nil {
		return // the client sees it
	}
	defer server.Close()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // either may end it
			_ = way[0].Close()
		})
	}
	both.Wait()
}

// Stop ends it.
func (r *Real) Stop() error {
	for _, l := range r.listeners {
		_ = l.Close()
	}
	err := r.Daemon.Stop() // which ends the connections
	r.copying.Wait()
	return err
}

// RealServer is a server as Nova shows it to its administrator.
type RealServer struct {
	ID, Name, Status string
	Metadata         map[string]string
	UserData         []byte  `json:"OS-EXT-SRV-ATTR:user_data"`
	Task             *string `json:"OS-EXT-STS:task_state"`
}

// Servers are the servers of all projects.
func (r *Real) Servers() ([]RealServer, error) {
	var out struct{ Servers []RealServer }
	err := r.request(http.MethodGet, "http://nova/v2.1/servers/detail?all_tenants=1", nil, &out)
	return out.Servers, err
}

// PowerOff tells Nova that a server is off, as nova-compute does when the guest has ended.
func (r *Real) PowerOff(id string) error {
	return r.request(http.MethodPost, "http://nova/v2.1/servers/"+id+"/action", map[string]any{"os-stop": nil}, nil)
}

// login takes the administrator's token, which is good for an hour.
func (r *Real) login() error {
	domain := map[string]any{"name": "Default"}
	return r.request(http.MethodPost, "http://keystone/v3/auth/tokens", map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{"user": map[string]any{
			"name": "admin", "password": "secret", "domain": domain,
		}}},
		"scope": map[string]any{"project": map[string]any{"name": "admin", "domain": domain}},
	}}, nil)
}

func (r *Real) request(method, url string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(context.Background(), method, url, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("OpenStack-API-Version", "compute 2.69")
	if r.token != "" {
		req.Header.Set("X-Auth-Token", r.token)
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, text)
	}
	if token := resp.Header.Get("X-Subject-Token"); token != "" {
		r.token = token
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
