// Package openstacktest is a small OpenStack for tests. We wrote it after the documentation of
// Nova, Keystone, Glance and Neutron and a trial with the release Zed, so it shares our
// misunderstandings. The nightly tests use the real ones (scripts/openstack.sh).
//
// Servers are built, stopped and removed in the background, names are not unique, and all pages of
// a list but the last have a link to the next.
package openstacktest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// What a test logs in with.
const (
	User, Password, Project        = "leasehold", "hunter2", "machines"
	Credential, CredentialSecret   = "app-1", "app-secret"
	Image, Network, SmallNetwork   = "debian-12", "net-a", "net-b"
	Flavor, LargeFlavor, GoneImage = "m1.small", "m1.large", "debian-9"
)

// step is how long each step of Nova's takes.
const step = 20 * time.Millisecond

// Cloud is a running OpenStack. Its fields are set before it is used, or with Set.
type Cloud struct {
	URL    string
	server *httptest.Server

	mu      sync.Mutex
	servers []*Server // in the order in which they were made
	tokens  map[string]bool
	timers  sync.WaitGroup
	closed  bool
	calls   map[string]int // requests, by method and path with IDs left out

	// Page is the most servers of one page.
	Page int
	// Full are flavors for which no host has room.
	Full map[string]bool
	// Quota is how many servers there may be; 0: no bound.
	Quota int
	// NoAddress are networks without a free address.
	NoAddress map[string]bool
	// Availability tells free addresses of networks by ID; nil: it is forbidden to ask, as in most
	// clouds.
	Availability map[string]int
	// Hidden are servers in a part of Nova that is down, by ID.
	Hidden map[string]bool
	// Intercept answers a request instead, if it returns true.
	Intercept func(w http.ResponseWriter, r *http.Request) bool
	// Boot starts what runs in a server, and returns how to end it: in order, or at once. It calls
	// ended when it ends by itself.
	Boot func(s Server, ended func()) (end func(hard bool), err error)
}

// Server is a server as Nova has it.
type Server struct {
	ID, Name, Status, Task, Fault, Flavor, UserData, Console string
	Metadata                                                 map[string]string
	Networks                                                 any
	Image, Key, Zone                                         string
	SecurityGroups                                           []string
	ConfigDrive                                              bool
	Launched                                                 bool
	Power                                                    int
	Address                                                  string
	end                                                      func(hard bool)
	boot                                                     int
}

// New starts a cloud.
func New() *Cloud {
	c := &Cloud{tokens: map[string]bool{}, calls: map[string]int{}, Hidden: map[string]bool{}, Page: 1000}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /identity/v3/auth/tokens", c.login)
	for pattern, answer := range map[string]http.HandlerFunc{
		"GET /compute/v2.1/flavors/detail":                         c.flavors,
		"GET /compute/v2.1/servers/detail":                         c.list,
		"POST /compute/v2.1/servers":                               c.create,
		"GET /compute/v2.1/servers/{id}":                           c.show,
		"DELETE /compute/v2.1/servers/{id}":                        c.remove,
		"POST /compute/v2.1/servers/{id}/metadata":                 c.setMetadata,
		"POST /compute/v2.1/servers/{id}/action":                   c.action,
		"GET /image/v2/images":                                     c.images,
		"GET /network/v2.0/networks":                               c.networks,
		"GET /network/v2.0/network-ip-availabilities/{network_id}": c.availability,
	} {
		mux.HandleFunc(pattern, c.authenticated(answer))
	}
	c.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		intercept := c.Intercept
		c.mu.Unlock()
		if intercept == nil || !intercept(w, r) {
			mux.ServeHTTP(w, r)
		}
	}))
	c.URL = c.server.URL
	return c
}

// Close ends the cloud, and what runs in it.
func (c *Cloud) Close() {
	c.server.Close()
	c.mu.Lock()
	c.closed = true
	var ends []func(bool)
	for _, s := range c.servers {
		if s.end != nil {
			ends = append(ends, s.end)
		}
	}
	c.mu.Unlock()
	for _, end := range ends {
		end(true)
	}
	c.timers.Wait()
}

// Set changes the cloud while it is in use.
func (c *Cloud) Set(f func(c *Cloud)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c)
}

// Expire has all tokens refused from now on.
func (c *Cloud) Expire() { c.Set(func(c *Cloud) { clear(c.tokens) }) }

// Servers are all servers that there are.
func (c *Cloud) Servers() (all []Server) {
	c.Set(func(c *Cloud) {
		for _, s := range c.servers {
			all = append(all, *s)
		}
	})
	return all
}

// Change changes a server behind the provider's back; nil in its place removes it.
func (c *Cloud) Change(id string, f func(s *Server)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.find(id)
	if s != nil {
		f(s)
	}
	return s != nil
}

// Add has a server that the provider did not make.
func (c *Cloud) Add(s Server) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.ID = newID()
	c.servers = append(c.servers, &s)
	return s.ID
}

// Kill ends what runs in a server, as a guest that crashes or powers itself off: Nova shows it
// SHUTOFF.
func (c *Cloud) Kill(id string) error {
	var end func(bool)
	if !c.Change(id, func(s *Server) {
		s.Status, s.Power = "SHUTOFF", 4
		end, s.end = s.end, nil
		s.boot++
	}) {
		return fmt.Errorf("there is no server %s", id)
	}
	if end != nil {
		end(true)
	}
	return nil
}

// Calls is how often a kind of request came, such as "POST servers".
func (c *Cloud) Calls(kind string) (n int) {
	c.Set(func(c *Cloud) { n = c.calls[kind] })
	return n
}

func (c *Cloud) find(id string) *Server {
	for _, s := range c.servers {
		if s.ID == id {
			return s
		}
	}
	return nil
}

func (c *Cloud) drop(id string) {
	for i, s := range c.servers {
		if s.ID == id {
			c.servers = append(c.servers[:i:i], c.servers[i+1:]...)
			return
		}
	}
}

// after does something in the background, with the lock held.
func (c *Cloud) after(f func()) {
	c.timers.Add(1)
	time.AfterFunc(step, func() {
		defer c.timers.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		f()
	})
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Refuse answers with an error as Nova does.
func Refuse(w http.ResponseWriter, code int, text string) {
	answer(w, code, map[string]any{"error": map[string]any{"code": code, "message": text}})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if body != nil {
		_ = json.NewEncoder(w).Encode(body)
	}
}

func (c *Cloud) authenticated(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		good := c.tokens[r.Header.Get("X-Auth-Token")]
		path := strings.TrimPrefix(r.URL.Path, "/compute/v2.1/")
		if id := r.PathValue("id"); id != "" {
			path = strings.Replace(path, id, "ID", 1)
		}
		c.calls[r.Method+" "+path]++
		c.mu.Unlock()
		switch {
		case !good:
			Refuse(w, http.StatusUnauthorized, "The request you have made requires authentication.")
		case strings.HasPrefix(r.URL.Path, "/compute/") && r.Header.Get("OpenStack-API-Version") != "compute 2.69":
			Refuse(w, http.StatusNotAcceptable, "another microversion was asked for")
		default:
			f(w, r)
		}
	}
}

// login is Keystone.
func (c *Cloud) login(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Auth struct {
			Identity struct {
				Password struct {
					User struct {
						Name, Password string
						Domain         struct{ Name string }
					}
				}
				ApplicationCredential struct{ ID, Secret string } `json:"application_credential"`
			}
			Scope struct {
				Project struct{ Name string }
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		Refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	user, app := body.Auth.Identity.Password.User, body.Auth.Identity.ApplicationCredential
	byUser := user.Name == User && user.Password == Password && user.Domain.Name == "Default" &&
		body.Auth.Scope.Project.Name == Project
	if !byUser && (app.ID != Credential || app.Secret != CredentialSecret) {
		Refuse(w, http.StatusUnauthorized, "The request you have made requires authentication.")
		return
	}
	token := newID()
	c.Set(func(c *Cloud) { c.tokens[token] = true; c.calls["POST tokens"]++ })
	var catalog []any
	for kind, path := range map[string]string{"compute": "/compute/v2.1", "image": "/image", "network": "/network"} {
		catalog = append(catalog, map[string]any{"type": kind, "name": kind, "endpoints": []any{
			map[string]any{"interface": "public", "region": "one", "region_id": "one", "url": c.URL + path},
			map[string]any{"interface": "public", "region": "two", "region_id": "two", "url": "http://127.0.0.1:1"},
		}})
	}
	w.Header().Set("X-Subject-Token", token)
	answer(w, http.StatusCreated, map[string]any{"token": map[string]any{
		"catalog": catalog, "expires_at": "2099-01-01T00:00:00.000000Z", "methods": []string{"password"},
	}})
}
