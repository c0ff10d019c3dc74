package targetgroup

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"

	"github.com/leasehold/leasehold/provider/amazon"
	"github.com/leasehold/leasehold/provider/balancer"
)

// Config says which target groups the members join.
type Config struct {
	Region   string `json:"region"`
	Endpoint string `json:"endpoint,omitempty"` // of a compatible cloud; default: Amazon's for the region
	// Secrets names the shard's secrets with the access key. Without it the SDK looks for credentials.
	Secrets *amazon.Secrets `json:"secrets,omitempty"`
	// TargetGroups are the ARNs of the groups. A member joins all of them.
	TargetGroups []string `json:"arns"`
	// CallsPerMinute bounds the requests. Default 300.
	CallsPerMinute int `json:"calls_per_minute,omitempty"`
	// CallTimeout is how long one call may take. Default 30s.
	CallTimeout string `json:"call_timeout,omitempty"`
	// Consistency is how long Amazon may take to show what was done. Default 10s.
	Consistency string `json:"consistency,omitempty"`

	Client elb.HTTPClient `json:"-"` // for tests; default: amazon.Client
}

const (
	defaultTimeout     = 30 * time.Second
	defaultConsistency = 10 * time.Second
	requestTimeout     = 15 * time.Second // of one request, so that a lost answer is noticed
)

var groupForm = regexp.MustCompile(
	`^arn:[a-z0-9-]+:elasticloadbalancing:([a-z0-9-]+):[0-9]{12}:targetgroup/[A-Za-z0-9-]{1,32}/[0-9a-f]{16}$`)

// New checks the configuration. It sends no request.
func New(ctx context.Context, c Config) (*Balancer, error) {
	b, err := c.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("target groups: %w", err)
	}
	return b, nil
}

func (c Config) open(ctx context.Context) (*Balancer, error) {
	common := amazon.Settings{
		Region: c.Region, Endpoint: c.Endpoint, Secrets: c.Secrets, CallsPerMinute: c.CallsPerMinute,
	}
	if err := common.Check(); err != nil {
		return nil, err
	}
	if len(c.TargetGroups) == 0 {
		return nil, errors.New("arns: is missing: name the ARN of at least one target group")
	}
	for i, arn := range c.TargetGroups {
		switch m := groupForm.FindStringSubmatch(arn); {
		case m == nil:
			return nil, fmt.Errorf("arns: %q: must be an ARN, "+
				"arn:aws:elasticloadbalancing:REGION:ACCOUNT:targetgroup/NAME/ID", arn)
		case m[1] != c.Region:
			return nil, fmt.Errorf("arns: %q: is in another region than %s: give each region a balancer of its own", arn,
				c.Region)
		case slices.Contains(c.TargetGroups[:i], arn):
			return nil, fmt.Errorf("arns: %q: is named twice", arn)
		}
	}
	if c.CallsPerMinute == 0 {
		c.CallsPerMinute = amazon.DefaultCalls
	}
	b := &Balancer{
		region: c.Region, groups: slices.Clone(c.TargetGroups), gate: amazon.NewGate(c.CallsPerMinute),
		timeout: defaultTimeout, consistency: defaultConsistency, looked: map[string]bool{},
		lookup: amazon.NoSecret,
	}
	for _, d := range []struct {
		name, text string
		to         *time.Duration
	}{{"call_timeout", c.CallTimeout, &b.timeout}, {"consistency", c.Consistency, &b.consistency}} {
		var err error
		if *d.to, err = amazon.Duration(d.name, d.text, *d.to); err != nil {
			return nil, err
		}
	}
	client, err := b.newClient(ctx, c)
	if err != nil {
		return nil, err
	}
	b.api = apiOf(client)
	return b, nil
}

// newClient makes the SDK's client. It repeats nothing by itself.
func (b *Balancer) newClient(ctx context.Context, c Config) (*elb.Client, error) {
	if c.Client == nil {
		client, err := amazon.Client(requestTimeout)
		if err != nil {
			return nil, err
		}
		c.Client = client
	}
	options := elb.Options{
		Region: c.Region, HTTPClient: c.Client, Retryer: aws.NopRetryer{}, AppID: "leasehold",
		HTTPSignerV4: amazon.Signer{},
	}
	if c.Endpoint != "" {
		options.BaseEndpoint = aws.String(c.Endpoint)
	}
	var err error
	options.Credentials, err = amazon.Credentials(ctx, c.Region, c.Secrets,
		func(name string) (string, error) { return b.lookup(name) })
	if err != nil {
		return nil, err
	}
	return elb.New(options), nil
}

var _ balancer.SecretUser = (*Balancer)(nil)

// UseSecrets says where the values of the shard's secrets are.
func (b *Balancer) UseSecrets(lookup func(name string) (string, error)) { b.lookup = lookup }
