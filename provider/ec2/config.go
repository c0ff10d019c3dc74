package ec2

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/leasehold/leasehold/provider/amazon"
)

// Config says which region and subnets are used, and what machines have unless their template says
// otherwise.
type Config struct {
	Region   string `json:"region"`
	Endpoint string `json:"endpoint,omitempty"` // of a compatible cloud; default: Amazon's for the region
	// Secrets names the shard's secrets with the access key. Without it the SDK looks for credentials:
	// the environment, its files, the role of the coordinator's machine.
	Secrets *Secrets `json:"secrets,omitempty"`
	// Zones are the zones' names and the subnets of each; the subnets of one zone are in one
	// availability zone.
	Zones          map[string]Zone `json:"zones"`
	Image          string          `json:"image,omitempty"`           // of templates that name none
	SecurityGroups []string        `json:"security_groups,omitempty"` // of templates that name none
	// CallsPerMinute bounds the requests to EC2. Default 300.
	CallsPerMinute int `json:"calls_per_minute,omitempty"`
	// Consistency is how long EC2 may take to show what was done. Default 1m.
	Consistency string `json:"consistency,omitempty"`
	// CallTimeout is how long one call may take: it waits until a machine has stopped. Default 5m.
	CallTimeout string `json:"call_timeout,omitempty"`
	// PollInterval is how often a call that waits looks at its machine. Default 3s.
	PollInterval string `json:"poll_interval,omitempty"`

	Logger *slog.Logger   `json:"-"` // default: discard
	Client ec2.HTTPClient `json:"-"` // for tests; default: amazon.Client
}

// Secrets are names of the shard's secrets.
type Secrets = amazon.Secrets

// Zone is where the machines of a zone are.
type Zone struct {
	Subnets []string `json:"subnets"`
}

const (
	defaultConsistency = time.Minute
	defaultTimeout     = 5 * time.Minute
	defaultPoll        = 3 * time.Second
	requestTimeout     = 30 * time.Second // of one request, so that a lost answer is noticed
)

var (
	subnetForm = regexp.MustCompile(`^subnet-[0-9a-f]{8,17}$`)
	imageForm  = regexp.MustCompile(`^ami-[0-9a-f]{8,17}$`)
	groupForm  = regexp.MustCompile(`^sg-[0-9a-f]{8,17}$`)
)

// New checks the configuration. It sends no request to EC2.
func New(ctx context.Context, c Config) (*Provider, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("ec2 provider: %w", err)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.CallsPerMinute == 0 {
		c.CallsPerMinute = amazon.DefaultCalls
	}
	p := &Provider{
		zones: c.Zones, image: c.Image, groups: slices.Clone(c.SecurityGroups), schema: schemaOf(c), log: c.Logger,
		gate: amazon.NewGate(c.CallsPerMinute), region: c.Region, young: map[key]newborn{}, spent: map[key]int{},
		gone: map[string]time.Time{}, batches: map[string]*batch{}, roots: map[string]string{},
		free:   map[string]freeSubnets{},
		lookup: amazon.NoSecret,
	}
	for _, d := range []struct {
		name, text string
		to         *time.Duration
		otherwise  time.Duration
	}{
		{"consistency", c.Consistency, &p.consistency, defaultConsistency},
		{"call_timeout", c.CallTimeout, &p.timeout, defaultTimeout},
		{"poll_interval", c.PollInterval, &p.poll, defaultPoll},
	} {
		var err error
		if *d.to, err = amazon.Duration(d.name, d.text, d.otherwise); err != nil {
			return nil, fmt.Errorf("ec2 provider: %w", err)
		}
	}
	client, err := p.newClient(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("ec2 provider: %w", err)
	}
	p.api = apiOf(client)
	return p, nil
}

func (c *Config) check() error {
	common := amazon.Settings{
		Region: c.Region, Endpoint: c.Endpoint, Secrets: c.Secrets, CallsPerMinute: c.CallsPerMinute,
	}
	if err := common.Check(); err != nil {
		return err
	}
	switch {
	case len(c.Zones) == 0:
		return errors.New("zones: is missing: name at least one zone and its subnets: {eu-west-1a: {subnets: [subnet-…]}}")
	case c.Image != "" && !imageForm.MatchString(c.Image):
		return fmt.Errorf("image: %q: must be an image's ID, such as ami-0123456789abcdef0", c.Image)
	}
	for _, zone := range slices.Sorted(maps.Keys(c.Zones)) {
		if zone == "" || len(c.Zones[zone].Subnets) == 0 {
			return fmt.Errorf("zones: %q: a zone has a name and at least one subnet", zone)
		}
		for _, s := range c.Zones[zone].Subnets {
			if !subnetForm.MatchString(s) {
				return fmt.Errorf("zones: %s: subnets: %q: must be a subnet's ID, such as subnet-0123456789abcdef0", zone, s)
			}
		}
	}
	for _, g := range c.SecurityGroups {
		if !groupForm.MatchString(g) {
			return fmt.Errorf("security_groups: %q: must be a security group's ID, such as sg-0123456789abcdef0", g)
		}
	}
	return nil
}

// newClient makes the SDK's client. It repeats nothing by itself: the provider decides what is
// repeated, and every request passes its gate.
func (p *Provider) newClient(ctx context.Context, c Config) (*ec2.Client, error) {
	if c.Client == nil {
		client, err := amazon.Client(requestTimeout)
		if err != nil {
			return nil, err
		}
		c.Client = client
	}
	options := ec2.Options{
		Region: c.Region, HTTPClient: c.Client, Retryer: aws.NopRetryer{}, AppID: "leasehold",
		HTTPSignerV4: amazon.Signer{},
	}
	if c.Endpoint != "" {
		options.BaseEndpoint = aws.String(c.Endpoint)
	}
	var err error
	options.Credentials, err = amazon.Credentials(ctx, c.Region, c.Secrets,
		func(name string) (string, error) { return p.lookup(name) })
	if err != nil {
		return nil, err
	}
	return ec2.New(options), nil
}
