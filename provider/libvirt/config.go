package libvirt

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

// Config says where the hypervisors are, and what machines have unless their template says
// otherwise.
type Config struct {
	// Zones are the zones' names, and the hypervisor of each.
	Zones map[string]Zone `json:"zones"`
	// Of hypervisors that are reached by TLS, all three files as PEM:
	Cert string `json:"cert,omitempty"` // the client's certificate
	Key  string `json:"key,omitempty"`  // its key
	CA   string `json:"ca,omitempty"`   // the authorities of the hypervisors' certificates

	Pool string `json:"pool,omitempty"` // the storage pool on each hypervisor; default "default"
	// InstanceTypes are the sizes that templates may name.
	InstanceTypes map[string]InstanceType `json:"instance_types,omitempty"`
	Image         string                  `json:"image,omitempty"` // of templates that name none, and no kernel either
	// Networks are for templates that name none. Default: the network "default".
	Networks []string `json:"networks,omitempty"`
	// UserNetwork gives machines of templates that name no networks QEMU's own network instead, which
	// needs no rights. The hypervisor's loopback addresses are reached from it: it is for trying out.
	UserNetwork bool `json:"user_network,omitempty"`
	// Emulate runs machines without KVM.
	Emulate bool `json:"emulate,omitempty"`
	// CallTimeout is how long one call may take. Default 2m.
	CallTimeout string `json:"call_timeout,omitempty"`

	Logger *slog.Logger `json:"-"` // default: discard
}

// Zone is one hypervisor.
type Zone struct {
	// URI is qemu:///system, qemu:///system?socket=PATH or qemu+tls://HOST[:PORT]/system.
	URI string `json:"uri"`
	// Memory bounds what all machines on the hypervisor have together. Default: the host's.
	Memory string `json:"memory,omitempty"`
}

// InstanceType is a size of machines.
type InstanceType struct {
	VCPUs  int    `json:"vcpus"`
	Memory string `json:"memory"`
}

const (
	defaultTimeout = 2 * time.Minute
	defaultPool    = "default"
	defaultNetwork = "default"
	defaultMemory  = 1 << 30
	tlsPort        = "16514"
)

var (
	zoneForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	// volumeForm: a file's name in the pool's directory.
	volumeForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,199}$`)
)

// New checks the configuration. It does not connect: hypervisors may come up later.
func New(c Config) (*Provider, error) {
	p, err := open(c)
	if err != nil {
		return nil, fmt.Errorf("libvirt provider: %w", err)
	}
	return p, nil
}

func open(c Config) (*Provider, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Pool == "" {
		c.Pool = defaultPool
	}
	if c.Networks == nil && !c.UserNetwork {
		c.Networks = []string{defaultNetwork}
	}
	if len(c.Networks) > 0 && c.UserNetwork {
		return nil, errors.New("networks and user_network are both set: remove one")
	}
	timeout := defaultTimeout
	if c.CallTimeout != "" {
		var err error
		if timeout, err = time.ParseDuration(c.CallTimeout); err != nil || timeout <= 0 {
			return nil, fmt.Errorf("call_timeout %q: must be a duration such as 2m", c.CallTimeout)
		}
	}
	if !poolForm.MatchString(c.Pool) {
		return nil, fmt.Errorf("pool %q: must be the name of a storage pool", c.Pool)
	}
	if c.Image != "" && !volumeForm.MatchString(c.Image) {
		return nil, fmt.Errorf("image %q: must be the name of a volume", c.Image)
	}
	for _, n := range c.Networks {
		if !poolForm.MatchString(n) {
			return nil, fmt.Errorf("networks: %q: must be the name of a network of libvirt's", n)
		}
	}
	p := &Provider{
		config: c, timeout: timeout, log: c.Logger, types: map[string]size{}, seen: map[key]string{},
		addresses: map[key]string{}, undefined: map[undefined]machineOf{}, reported: map[string]bool{},
	}
	for name, t := range c.InstanceTypes {
		memory, err := parseSize(t.Memory)
		if err != nil || t.VCPUs < 1 || t.VCPUs > maxVCPUs || name == "" {
			return nil, fmt.Errorf("instance_types: %q: must be a name with vcpus from 1 to %d and memory such as 2GiB", name,
				maxVCPUs)
		}
		p.types[name] = size{name: name, vcpus: t.VCPUs, memory: memory}
	}
	if len(c.Zones) == 0 {
		return nil, errors.New("zones: at least one is needed, such as zones: {local: {uri: \"qemu:///system\"}}")
	}
	var secure *tls.Config
	for name, z := range c.Zones {
		h, err := hypervisorOf(name, z)
		if err != nil {
			return nil, fmt.Errorf("zones: %s: %w", name, err)
		}
		if h.host != "" {
			if secure == nil {
				if secure, err = c.readTLS(); err != nil {
					return nil, err
				}
			}
			h.secure = secure.Clone()
			h.secure.ServerName = h.serverName
		}
		p.hypervisors = append(p.hypervisors, h)
	}
	slices.SortFunc(p.hypervisors, func(a, b *hypervisor) int {
		if a.zone < b.zone {
			return -1
		}
		return 1
	})
	p.schema = schemaOf(c)
	return p, nil
}

func (c Config) readTLS() (*tls.Config, error) {
	if c.Cert == "" || c.Key == "" || c.CA == "" {
		return nil, errors.New("a hypervisor that is reached by TLS needs cert, key and ca: " +
			"the files of the client's certificate and key, and of the authority of the hypervisors' certificates")
	}
	certificate, err := egress.ClientCertificate(c.Cert, c.Key)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, fmt.Errorf("read ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("ca: %s has no certificate in PEM form", c.CA)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetClientCertificate: certificate, RootCAs: pool}, nil
}

// hypervisorOf reads a zone.
func hypervisorOf(name string, z Zone) (*hypervisor, error) {
	if !zoneForm.MatchString(name) {
		return nil, errors.New("a zone's name has letters, digits, '.', '_' and '-'")
	}
	h := newHypervisor(name)
	if z.Memory != "" {
		var err error
		if h.memory, err = parseSize(z.Memory); err != nil {
			return nil, fmt.Errorf("memory %q: must be a size such as 64GiB", z.Memory)
		}
	}
	u, err := url.Parse(z.URI)
	if err != nil || u.Path != "/system" && u.Path != "/session" || u.User != nil {
		return nil, fmt.Errorf("uri %q: must be qemu:///system, qemu:///system?socket=PATH or qemu+tls://HOST/system", z.URI)
	}
	query := u.Query()
	h.socket = query.Get("socket")
	query.Del("socket")
	h.name, h.where = "qemu://"+u.Path, z.URI
	switch {
	case len(query) > 0:
		return nil, fmt.Errorf("uri %q: has no parameters but socket: cert, key and ca are the provider's own", z.URI)
	case (u.Scheme == "qemu" || u.Scheme == "qemu+unix") && u.Host == "":
		if h.socket == "" {
			h.socket = "/run/libvirt/libvirt-sock"
		}
	case (u.Scheme == "qemu" || u.Scheme == "qemu+tls") && u.Host != "" && h.socket == "":
		port := u.Port()
		if port == "" {
			port = tlsPort
		}
		h.host, h.port, h.serverName = u.Hostname(), port, u.Hostname()
	default:
		return nil, fmt.Errorf("uri %q: Leasehold reaches hypervisors by their unix socket or by TLS alone: "+
			"qemu:///system or qemu+tls://HOST/system", z.URI)
	}
	return h, nil
}
