package openstack

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/leasehold/leasehold/provider/egress"
)

// Config says where OpenStack is, which user asks it, and what servers have unless their template
// says otherwise.
type Config struct {
	AuthURL   string `json:"auth_url"`            // of Keystone, such as https://keystone.example:5000/v3
	Region    string `json:"region,omitempty"`    // default: any
	Interface string `json:"interface,omitempty"` // of the service catalog: public (default) or internal
	CA        string `json:"ca,omitempty"`        // file of the authorities to trust, PEM; default: the system's

	// A user and its password, in a project.
	User           string `json:"user,omitempty"`
	UserDomain     string `json:"user_domain,omitempty"` // default "Default"
	Project        string `json:"project,omitempty"`
	ProjectDomain  string `json:"project_domain,omitempty"`  // default: the user's
	PasswordSecret string `json:"password_secret,omitempty"` // name of a secret of the shard
	// An application credential, which has its project.
	ApplicationCredential       string `json:"application_credential,omitempty"`        // its ID
	ApplicationCredentialSecret string `json:"application_credential_secret,omitempty"` // name of a secret of the shard

	// Zones are the zones' names, and where each one is. Default: one zone "nova".
	Zones map[string]Zone `json:"zones,omitempty"`
	// Endpoints replace the service catalog's: compute, image, network.
	Endpoints map[string]string `json:"endpoints,omitempty"`

	Image          string   `json:"image,omitempty"`           // of templates that name none
	Flavors        []string `json:"flavors,omitempty"`         // of templates that name no instance types
	KeyName        string   `json:"key_name,omitempty"`        // of templates that name none
	SecurityGroups []string `json:"security_groups,omitempty"` // of templates that name none

	// CallTimeout is how long one call may take. Default 5m: a build copies the image to its host.
	CallTimeout string `json:"call_timeout,omitempty"`
	// Rate is how many requests a second are sent at most. Default 20.
	Rate float64 `json:"rate,omitempty"`

	Logger *slog.Logger `json:"-"` // default: discard
}

// Zone is where the machines of a zone are made.
type Zone struct {
	AvailabilityZone string `json:"availability_zone,omitempty"` // Nova's; default: Nova chooses
	// Networks are the choice for a machine's one interface, which is on the one with the most free
	// addresses. Names or IDs. Default: Nova chooses ("auto").
	Networks []string `json:"networks,omitempty"`
}

const (
	defaultTimeout = 5 * time.Minute
	defaultRate    = 20
	defaultZone    = "nova"
	requestTimeout = time.Minute // one request, not one call
	handshake      = 10 * time.Second
	idleFor        = 30 * time.Second
	maxIdle        = 16
)

// New checks the configuration. It makes no request: OpenStack may come up later.
func New(c Config) (*Provider, error) {
	p, err := open(c)
	if err != nil {
		return nil, fmt.Errorf("openstack provider: %w", err)
	}
	return p, nil
}

func open(c Config) (*Provider, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if len(c.Zones) == 0 {
		c.Zones = map[string]Zone{defaultZone: {}}
	}
	if c.UserDomain == "" {
		c.UserDomain = "Default"
	}
	if c.ProjectDomain == "" {
		c.ProjectDomain = c.UserDomain
	}
	if c.Interface == "" {
		c.Interface = "public"
	}
	if c.Rate == 0 {
		c.Rate = defaultRate
	}
	timeout := defaultTimeout
	if c.CallTimeout != "" {
		var err error
		if timeout, err = time.ParseDuration(c.CallTimeout); err != nil || timeout <= 0 {
			return nil, fmt.Errorf("call_timeout %q: must be a duration such as 5m", c.CallTimeout)
		}
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: egress.Dialer().DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: handshake, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleFor,
	}
	if c.CA != "" {
		text, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, fmt.Errorf("read ca: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("ca: %s has no certificate in PEM form", c.CA)
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	}
	p := &Provider{
		config: c, timeout: timeout, log: c.Logger, known: map[string]seen{},
		lookup: func(name string) (string, error) {
			return "", fmt.Errorf("secret %q is not known: only a coordinator of the shard can open its secrets", name)
		},
		http: &http.Client{Timeout: requestTimeout, CheckRedirect: egress.Stay, Transport: &bounded{
			next: transport, rate: rate.NewLimiter(rate.Limit(c.Rate), max(1, int(c.Rate))),
		}},
		idle: transport.CloseIdleConnections, login: make(chan struct{}, 1),
	}
	p.schema = schemaOf(c)
	return p, nil
}

func (c Config) check() error {
	if err := checkURL("auth_url", c.AuthURL); err != nil {
		return err
	}
	for _, service := range slices.Sorted(maps.Keys(c.Endpoints)) {
		if !slices.Contains([]string{"compute", "image", "network"}, service) {
			return fmt.Errorf("endpoints: %q: the services are compute, image, network", service)
		}
		if err := checkURL("endpoints: "+service, c.Endpoints[service]); err != nil {
			return err
		}
	}
	if !slices.Contains([]string{"", "public", "internal"}, c.Interface) {
		return fmt.Errorf("interface %q: must be public or internal", c.Interface)
	}
	user, application := c.User != "", c.ApplicationCredential != ""
	switch {
	case user == application:
		return errors.New("must have either user, project and password_secret, or application_credential and " +
			"application_credential_secret")
	case user && (c.Project == "" || c.PasswordSecret == ""):
		return errors.New("a user needs a project and password_secret, the name of the secret with its " +
			"password: leasehold secret set NAME")
	case application && c.ApplicationCredentialSecret == "":
		return errors.New("application_credential needs application_credential_secret, " +
			"the name of the secret with its secret: leasehold secret set NAME")
	case c.Rate < 0:
		return errors.New("rate: must be more than 0")
	}
	for name := range c.Zones {
		if name == "" || len(name) > maxValue {
			return fmt.Errorf("zones: %q: a zone has a name of at most %d bytes", name, maxValue)
		}
	}
	return nil
}

func checkURL(what, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return fmt.Errorf("%s %q: must be a URL such as https://openstack.example:5000/v3", what, text)
	}
	return nil
}
