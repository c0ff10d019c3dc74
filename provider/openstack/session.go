package openstack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"golang.org/x/time/rate"

	"github.com/leasehold/leasehold/provider"
)

// microversion of Nova, of the release Stein (2019): since then a list shows servers of which a
// part of Nova that is down can tell nothing, with the state UNKNOWN, instead of leaving them out.
const microversion = "2.69"

// bounded keeps requests below a rate. OpenStack's own bound, if it has one, is for all its
// clients.
type bounded struct {
	next http.RoundTripper
	rate *rate.Limiter
}

func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := b.rate.Wait(r.Context()); err != nil {
		return nil, err
	}
	return b.next.RoundTrip(r)
}

// session is a token, and where the services are.
type session struct {
	compute, image, network *gophercloud.ServiceClient // network may be nil
}

// with runs f with a session. A token that OpenStack refuses is exchanged for another one, once: it
// has expired, or was revoked. What was refused for its token was not done, so it may be repeated.
func (p *Provider) with(ctx context.Context, f func(s *session) error) error {
	s, err := p.loggedIn(ctx, nil)
	if err == nil {
		if err = f(s); !isStatus(err, http.StatusUnauthorized) {
			return err
		}
		if s, err = p.loggedIn(ctx, s); err == nil {
			err = f(s)
		}
	}
	return err
}

// patient is like with, for a request that changes nothing or can be repeated: it waits out a
// throttle, if that ends before the call does.
func (p *Provider) patient(ctx context.Context, f func(s *session) error) error {
	for {
		err := p.with(ctx, f)
		e, is := refused(err)
		if !is || e.Actual != http.StatusTooManyRequests &&
			(e.Actual != http.StatusRequestEntityTooLarge || isQuota(textOf(e))) {
			return err
		}
		wait := retryAfter(e.ResponseHeader)
		if deadline, has := ctx.Deadline(); has && time.Until(deadline) <= wait {
			return err
		}
		if pause(ctx, wait) != nil {
			return err
		}
	}
}

// fetch reads JSON.
func fetch(ctx context.Context, c *gophercloud.ServiceClient, url string, into any) error {
	_, err := c.Get(ctx, url, into, nil) //nolint:bodyclose // it is closed once it is read as JSON
	return err
}

func pause(ctx context.Context, wait time.Duration) error {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// loggedIn is the present session, or a new one if there is none or its token was refused. Only one
// call at a time asks Keystone.
func (p *Provider) loggedIn(ctx context.Context, refused *session) (*session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case p.login <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-p.login }()
	p.mu.Lock()
	s := p.session
	p.mu.Unlock()
	if s != nil && s != refused {
		return s, nil
	}
	s, err := p.authenticate(ctx)
	p.mu.Lock()
	p.session = s
	p.mu.Unlock()
	return s, err
}

func (p *Provider) authenticate(ctx context.Context) (*session, error) {
	c := p.config
	name := c.PasswordSecret + c.ApplicationCredentialSecret // one of them is empty
	value, err := p.lookup(name)
	if err != nil {
		return nil, &provider.Error{Kind: provider.Credentials, Scope: name, Message: err.Error()}
	}
	options := &tokens.AuthOptions{
		ApplicationCredentialID: c.ApplicationCredential, ApplicationCredentialSecret: value,
	}
	if c.User != "" {
		options = &tokens.AuthOptions{
			Username: c.User, DomainName: c.UserDomain, Password: value,
			Scope: tokens.Scope{ProjectName: c.Project, DomainName: c.ProjectDomain},
		}
	}
	client, err := openstack.NewClient(c.AuthURL)
	if err != nil {
		return nil, err
	}
	client.HTTPClient = *p.http
	identity := &gophercloud.ServiceClient{ProviderClient: client, Endpoint: versioned(c.AuthURL, "v3", "v3/")}
	result := tokens.Create(ctx, identity, options)
	token, err := result.ExtractTokenID()
	if err == nil && token == "" {
		err = errors.New("its answer has no token")
	}
	if err != nil {
		return nil, fmt.Errorf("log in to %s: %w", c.AuthURL, err)
	}
	catalog, err := result.ExtractServiceCatalog()
	if err != nil {
		return nil, fmt.Errorf("log in to %s: read the service catalog: %w", c.AuthURL, err)
	}
	client.SetToken(token)
	s := &session{}
	for _, service := range []struct {
		to                   **gophercloud.ServiceClient
		kind, major, version string
	}{
		{&s.compute, "compute", "v2", "v2.1/"}, {&s.image, "image", "v2", "v2/"}, {&s.network, "network", "v2", "v2.0/"},
	} {
		endpoint := c.Endpoints[service.kind]
		if endpoint == "" {
			endpoint = p.endpoint(catalog, service.kind)
		}
		switch {
		case endpoint != "":
			*service.to = &gophercloud.ServiceClient{
				ProviderClient: client, Type: service.kind, Endpoint: versioned(endpoint, service.major, service.version),
			}
		case service.kind != "network":
			return nil, fmt.Errorf("the service catalog has no %s endpoint for the interface %s and the region %q: "+
				"correct region or interface, or set endpoints",
				service.kind, c.Interface, c.Region)
		}
	}
	s.compute.Microversion = microversion
	return s, nil
}

func (p *Provider) endpoint(catalog *tokens.ServiceCatalog, kind string) string {
	for _, entry := range catalog.Entries {
		for _, e := range entry.Endpoints {
			if entry.Type == kind && e.Interface == p.config.Interface &&
				(p.config.Region == "" || p.config.Region == e.Region || p.config.Region == e.RegionID) {
				return e.URL
			}
		}
	}
	return ""
}

var hasVersion = map[string]*regexp.Regexp{
	"v2": regexp.MustCompile(`^https?://[^/]+/(.*/)?v2(\.[0-9]+)?/`),
	"v3": regexp.MustCompile(`^https?://[^/]+/(.*/)?v3/`),
}

// versioned is an endpoint with its version: catalogs have it in some clouds, and not in others.
func versioned(endpoint, major, version string) string {
	endpoint = strings.TrimRight(endpoint, "/") + "/"
	if hasVersion[major].MatchString(endpoint) {
		return endpoint
	}
	return endpoint + version
}
