package lxd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/leasehold/leasehold/provider/egress"
)

// Config says where LXD is, and what containers have unless their template says otherwise.
type Config struct {
	Socket string `json:"socket,omitempty"` // default: the first of sockets that exists
	// URL names a server that is reached by HTTPS instead of a socket, such as
	// https://lxd.example:8443. It needs the other three.
	URL        string `json:"url,omitempty"`
	Cert       string `json:"cert,omitempty"`        // file of the client's certificate, PEM
	Key        string `json:"key,omitempty"`         // file of its key, PEM
	ServerCert string `json:"server_cert,omitempty"` // file of the server's certificate, PEM

	Project string `json:"project,omitempty"` // default "default"
	// Pool holds the containers' root disks. Default: as the profiles say.
	Pool     string   `json:"pool,omitempty"`
	Profiles []string `json:"profiles,omitempty"` // default: LXD's profile "default"
	Image    string   `json:"image,omitempty"`    // of templates that name none
	// Zones are the zones' names, and the member of the cluster, or the @group of members, of each;
	// "" leaves the choice to LXD. Default: one zone "local".
	Zones map[string]string `json:"zones,omitempty"`
	// CallTimeout is how long one call may take, for example "2m": the first container of an image
	// waits until LXD has unpacked it. Default 2m.
	CallTimeout string `json:"call_timeout,omitempty"`

	Logger *slog.Logger `json:"-"` // default: discard
}

const (
	defaultTimeout = 2 * time.Minute
	defaultProject = "default"
	defaultZone    = "local"
)

// sockets are where packages of LXD and Incus put them.
var sockets = []string{
	"/var/snap/lxd/common/lxd/unix.socket", "/var/lib/lxd/unix.socket", "/var/lib/incus/unix.socket",
}

// New checks the configuration. It does not connect: LXD may come up later.
func New(c Config) (*Provider, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Project == "" {
		c.Project = defaultProject
	}
	if len(c.Zones) == 0 {
		c.Zones = map[string]string{defaultZone: ""}
	}
	timeout := defaultTimeout
	if c.CallTimeout != "" {
		var err error
		if timeout, err = time.ParseDuration(c.CallTimeout); err != nil || timeout <= 0 {
			return nil, fmt.Errorf("lxd provider: call_timeout %q: must be a duration such as 2m", c.CallTimeout)
		}
	}
	for zone, target := range c.Zones {
		if zone == "" || target != "" && !targetName.MatchString(target) {
			return nil, fmt.Errorf("lxd provider: zones: %q: %q: a zone has a name, and is a member or a @group of the cluster",
				zone, target)
		}
	}
	cl, err := newClient(c)
	if err != nil {
		return nil, fmt.Errorf("lxd provider: %w", err)
	}
	p := &Provider{
		client: cl, project: c.Project, pool: c.Pool, profiles: slices.Clone(c.Profiles), image: c.Image, zones: c.Zones,
		timeout: timeout, log: c.Logger, known: map[string]known{},
		consoles: map[string]*consoleText{},
	}
	p.schema = schemaOf(c)
	return p, nil
}

var targetName = regexp.MustCompile(`^@?[A-Za-z0-9][A-Za-z0-9._-]*$`)

// newClient chooses between socket and HTTPS.
func newClient(c Config) (*client, error) {
	if c.URL == "" {
		if c.Cert != "" || c.Key != "" || c.ServerCert != "" {
			return nil, errors.New("cert, key and server_cert are of a server with a url: set it, or remove them")
		}
		return socketClient(socketOf(c.Socket), c.Project), nil
	}
	if c.Socket != "" {
		return nil, errors.New("socket and url are both set: remove one")
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.Path != "" && u.Path != "/" {
		return nil, fmt.Errorf("url %q: must be https://HOST:PORT", c.URL)
	}
	if c.Cert == "" || c.Key == "" || c.ServerCert == "" {
		return nil, errors.New("a url needs cert, key and server_cert: the files of the client's certificate and key, " +
			"and of the server's certificate")
	}
	certificate, err := egress.ClientCertificate(c.Cert, c.Key)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(c.ServerCert)
	if err != nil {
		return nil, fmt.Errorf("read server_cert: %w", err)
	}
	config, err := pinned(text)
	if err != nil {
		return nil, fmt.Errorf("server_cert: %s: %w", c.ServerCert, err)
	}
	config.GetClientCertificate = certificate
	return httpsClient(u.Host, config, c.Project), nil
}

// socketOf returns the configured socket, or else the one of LXD's environment variable or package.
func socketOf(configured string) string {
	if configured != "" {
		return configured
	}
	if dir := os.Getenv("LXD_DIR"); dir != "" {
		return dir + "/unix.socket"
	}
	for _, path := range sockets {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return sockets[1]
}

// pinned trusts exactly one certificate: LXD signs its own, for a name that need not be the one by
// which it is reached.
func pinned(text []byte) (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("no certificate in PEM form")
	}
	cert, err := firstCertificate(text)
	if err != nil {
		return nil, err
	}
	var name string
	switch {
	case len(cert.DNSNames) > 0:
		name = cert.DNSNames[0]
	case len(cert.IPAddresses) > 0:
		name = cert.IPAddresses[0].String()
	default:
		return nil, errors.New("the certificate names no host")
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: name}, nil
}
