// Package client speaks to the API of a coordinator: see docs/api.md.
//
//	c, err := client.New(client.Config{URL: "https://coord-a:7421", User: "eva", Password: "…"})
//	spec, rev, err := c.Group(ctx, "web")
//	spec.Size = 8
//	result, err := c.Apply(ctx, spec, client.At(rev))
//
// An error of the API is an *api.Problem; Conflict reports whether another edit came first.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/api"
	"github.com/leasehold/leasehold/coordinator/view"
	"github.com/leasehold/leasehold/store"
)

// maxAnswer limits what is read of an answer.
const maxAnswer = 64 << 20

// maxWait limits how long a replica may take to accept a connection. An answer may take as long as
// the caller's context lets it.
const maxWait = 10 * time.Second

// Config says where the API is, and with which credentials to use it.
type Config struct {
	URL            string      // of a replica: https://coord-a:7421
	User, Password string      // a user of etcd; edits need one
	Token          string      // or the token of the page, which only reads
	TLS            *tls.Config // authorities and a client certificate; nil: the system's
}

// Client sends requests to a replica.
type Client struct {
	cfg  Config
	http *http.Client
}

// New returns a client. It sends nothing yet.
func New(cfg Config) (*Client, error) {
	at, err := url.Parse(cfg.URL)
	if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" {
		return nil, fmt.Errorf("URL %q: must be like https://HOST:PORT", cfg.URL)
	}
	cfg.URL = at.Scheme + "://" + at.Host
	return &Client{cfg, &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: cfg.TLS, Proxy: http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: maxWait}).DialContext,
			TLSHandshakeTimeout: maxWait, IdleConnTimeout: time.Minute,
		},
		// the credentials are for this replica alone
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Option says how an edit is to be made.
type Option func(*http.Request)

// At is the revision that an edit is based on; 0: there must be no such group.
func At(rev store.Revision) Option {
	return func(r *http.Request) {
		if rev == 0 {
			r.Header.Set("If-None-Match", "*")
			return
		}
		r.Header.Set("If-Match", `"`+strconv.FormatInt(int64(rev), 10)+`"`)
	}
}

// DryRun asks what would follow; nothing changes.
func DryRun() Option { return query("dryRun", "true") }

// Confirm confirms an edit that removes machines, by a name.
func Confirm(name string) Option { return query("confirm", name) }

// Once allows an order to be repeated after its answer was lost: with the same key it is given
// once. The key is any word that the caller uses for no other order, such as a UUID.
func Once(key string) Option {
	return func(r *http.Request) { r.Header.Set("Idempotency-Key", key) }
}

func query(name, value string) Option {
	return func(r *http.Request) {
		q := r.URL.Query()
		q.Add(name, value)
		r.URL.RawQuery = q.Encode()
	}
}

// Conflict reports whether an edit failed because another one came first: read the group again.
func Conflict(err error) bool {
	var p *api.Problem
	return errors.As(err, &p) && p.Status == http.StatusPreconditionFailed
}

// Shard reads the shard.
func (c *Client) Shard(ctx context.Context) (d api.Shard, err error) {
	_, err = c.do(ctx, http.MethodGet, "shard", nil, &d)
	return d, err
}

// Group reads the spec of a group, and its revision.
func (c *Client) Group(ctx context.Context, name string) (g store.Group, rev store.Revision, err error) {
	header, err := c.do(ctx, http.MethodGet, "groups/"+url.PathEscape(name), nil, &g)
	if err != nil {
		return g, 0, err
	}
	n, err := strconv.ParseInt(strings.Trim(header.Get("ETag"), `"`), 10, 64)
	if err != nil {
		return g, 0, fmt.Errorf("group %s: no ETag in the answer", name)
	}
	return g, store.Revision(n), nil
}

// Status reads the state of a group.
func (c *Client) Status(ctx context.Context, name string) (d api.Group, err error) {
	_, err = c.do(ctx, http.MethodGet, "groups/"+url.PathEscape(name)+"/status", nil, &d)
	return d, err
}

// Instances reads the instances of a group.
func (c *Client) Instances(ctx context.Context, group string) (list []api.Instance, err error) {
	_, err = c.do(ctx, http.MethodGet, "groups/"+url.PathEscape(group)+"/instances", nil, &list)
	return list, err
}

// Instance reads an instance and its story.
func (c *Client) Instance(ctx context.Context, id string) (d api.Story, err error) {
	_, err = c.do(ctx, http.MethodGet, "instances/"+url.PathEscape(id), nil, &d)
	return d, err
}

// Events reads entries of the journal; the query is as in the description of the API.
func (c *Client) Events(ctx context.Context, wanted url.Values) (d api.Events, err error) {
	_, err = c.do(ctx, http.MethodGet, "events?"+wanted.Encode(), nil, &d)
	return d, err
}

// Apply creates or changes a group.
func (c *Client) Apply(ctx context.Context, g store.Group, how ...Option) (r api.Result, err error) {
	g.OperatorState = store.OperatorState{} // only commands set it
	var file map[string]any
	if err := json.Unmarshal(store.Encode(g), &file); err != nil {
		return r, fmt.Errorf("group %s: %w", g.Name, err)
	}
	delete(file, "schema")
	_, err = c.do(ctx, http.MethodPut, "groups/"+url.PathEscape(g.Name), file, &r, how...)
	return r, err
}

// Scale changes the size of a group.
func (c *Client) Scale(ctx context.Context, group string, size int, how ...Option) (r api.Result, err error) {
	_, err = c.do(ctx, http.MethodPut, "groups/"+url.PathEscape(group)+"/size", map[string]int{"size": size}, &r, how...)
	return r, err
}

// Delete deletes a group and its instances.
func (c *Client) Delete(ctx context.Context, group string, how ...Option) (r api.Result, err error) {
	_, err = c.do(ctx, http.MethodDelete, "groups/"+url.PathEscape(group), nil, &r, how...)
	return r, err
}

// Do performs one of api.GroupActions on a group.
func (c *Client) Do(ctx context.Context, group, action string, how ...Option) (r api.Result, err error) {
	path := "groups/" + url.PathEscape(group) + "/actions/" + url.PathEscape(action)
	_, err = c.do(ctx, http.MethodPost, path, nil, &r, how...)
	return r, err
}

// Order gives an order about an instance: one of api.InstanceActions.
func (c *Client) Order(ctx context.Context, instance, action string, how ...Option) (r api.Result, err error) {
	_, err = c.do(ctx, http.MethodPost, "instances/"+url.PathEscape(instance)+"/actions/"+url.PathEscape(action), nil, &r,
		how...)
	return r, err
}

// Hold puts the shard on hold, based on Shard.Base.
func (c *Client) Hold(ctx context.Context, why string, how ...Option) (r api.Result, err error) {
	_, err = c.do(ctx, http.MethodPut, "shard/hold", api.Hold{Why: why}, &r, how...)
	return r, err
}

// Release ends the hold of the shard.
func (c *Client) Release(ctx context.Context, how ...Option) (r api.Result, err error) {
	_, err = c.do(ctx, http.MethodDelete, "shard/hold", nil, &r, how...)
	return r, err
}

// Freeze stops planned work of the shard for a while; nil ends that.
func (c *Client) Freeze(ctx context.Context, freeze *api.Freeze, how ...Option) (r api.Result, err error) {
	return c.put(ctx, "shard/freeze", freeze != nil, freeze, how)
}

// Evacuate replaces the instances of a zone elsewhere; end: the zone may be used again.
func (c *Client) Evacuate(ctx context.Context, zone string, end bool, how ...Option) (r api.Result, err error) {
	return c.put(ctx, "zones/"+url.PathEscape(zone)+"/evacuation", !end, nil, how)
}

// Protect protects an instance, based on Story.Base; nil ends that.
func (c *Client) Protect(ctx context.Context, instance string, protection *api.Protection, how ...Option,
) (r api.Result, err error) {
	return c.put(ctx, "instances/"+url.PathEscape(instance)+"/protection", protection != nil, protection, how)
}

// Drill causes a failure in a group on purpose; Drills shows the outcome.
func (c *Client) Drill(ctx context.Context, group string, drill api.Drill, how ...Option) (r api.Result, err error) {
	_, err = c.do(ctx, http.MethodPost, "groups/"+url.PathEscape(group)+"/drills", drill, &r, how...)
	return r, err
}

// Drills reads the drills of a group that the journal in memory knows.
func (c *Client) Drills(ctx context.Context, group string) (list []view.Drill, err error) {
	_, err = c.do(ctx, http.MethodGet, "groups/"+url.PathEscape(group)+"/drills", nil, &list)
	return list, err
}

// Create makes an instance on demand.
func (c *Client) Create(ctx context.Context, group string, how ...Option) (r api.Result, err error) {
	_, err = c.do(ctx, http.MethodPost, "groups/"+url.PathEscape(group)+"/instances", nil, &r, how...)
	return r, err
}

// Adopt makes a record for a machine that has none.
func (c *Client) Adopt(ctx context.Context, instance string, to api.Adoption, how ...Option) (r api.Result, err error) {
	_, err = c.do(ctx, http.MethodPost, "instances/"+url.PathEscape(instance)+"/adoption", to, &r, how...)
	return r, err
}

// put puts a document at a path, or deletes the path.
func (c *Client) put(ctx context.Context, path string, there bool, body any, how []Option) (r api.Result, err error) {
	method := http.MethodPut
	if !there {
		method, body = http.MethodDelete, nil
	}
	_, err = c.do(ctx, method, path, body, &r, how...)
	return r, err
}

func (c *Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("%s %s: %w", method, path, err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, c.cfg.URL+api.Root+path, bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	switch {
	case c.cfg.User != "":
		r.SetBasicAuth(c.cfg.User, c.cfg.Password)
	case c.cfg.Token != "":
		r.Header.Set("Authorization", "Bearer "+c.cfg.Token)
	}
	return r, nil
}

// do sends a request and reads the document of the answer.
func (c *Client) do(ctx context.Context, method, path string, body, into any, how ...Option) (http.Header, error) {
	r, err := c.request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	for _, option := range how {
		option(r)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return nil, problemOf(resp, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return nil, fmt.Errorf("%s %s: the answer cannot be read: %w", method, path, err)
	}
	return resp.Header, nil
}

// problemOf returns why a request was refused. Refusals in plain text come from the replica, before
// the API.
func problemOf(resp *http.Response, text []byte) *api.Problem {
	p := &api.Problem{}
	if json.Unmarshal(text, p) != nil || p.Detail == "" {
		p.Detail = strings.TrimSpace(string(text))
	}
	p.Status, p.Title = resp.StatusCode, http.StatusText(resp.StatusCode)
	return p
}
