package ec2

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/ec2/ec2test"
	"github.com/leasehold/leasehold/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testImage   = "ami-0123456789abcdef0"
	testSubnet  = "subnet-0000000a"
	otherSubnet = "subnet-0000000b"
	farSubnet   = "subnet-0000000c"
)

// account is what the server of most tests is.
func account() ec2test.Config {
	return ec2test.Config{
		Region: "test-1", Keys: map[string]string{"AKIATEST": "s3cret"}, Images: map[string]string{testImage: "/dev/xvda"},
		Subnets: map[string]ec2test.Subnet{
			testSubnet: {Zone: "test-1a", Free: 5000}, otherSubnet: {Zone: "test-1a", Free: 4000},
			farSubnet: {Zone: "test-1b", Free: 5000},
		},
		Types: map[string]int{"m7g.large": 2, "m6g.large": 2, "c7g.large": 2},
	}
}

// configuration is the one of most tests.
func configuration(endpoint string) Config {
	return Config{
		Region: "test-1", Endpoint: endpoint, Secrets: &Secrets{AccessKeyID: "id", SecretAccessKey: "key"},
		Zones: map[string]Zone{"a": {Subnets: []string{otherSubnet, testSubnet}}, "b": {Subnets: []string{farSubnet}}},
		Image: testImage, CallsPerMinute: 60000, PollInterval: "5ms", Consistency: "500ms", CallTimeout: "30s",
	}
}

// secrets are the shard's.
func secrets(name string) (string, error) {
	return map[string]string{"id": "AKIATEST", "key": "s3cret", "token": "t0ken"}[name], nil
}

func open(t *testing.T, c Config) *Provider {
	t.Helper()
	p, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	p.UseSecrets(secrets)
	return p
}

// serve starts a server over HTTP.
func serve(t *testing.T, c ec2test.Config) (s *ec2test.Server, endpoint string) {
	t.Helper()
	s = ec2test.New(c)
	over := httptest.NewServer(s)
	t.Cleanup(func() {
		over.CloseClientConnections()
		over.Close()
		s.Close()
	})
	return s, over.URL
}

var plain = provider.Template{InstanceTypes: []string{"m7g.large"}, Tags: map[string]string{"team": "web"}}

// The suite, with a server that shows everything at once and one that lags.
//
// proves PROV-1, SAFE-8
func TestContract(t *testing.T) {
	for name, change := range map[string]func(*ec2test.Config){
		"at once": func(*ec2test.Config) {},
		"lagging": func(c *ec2test.Config) {
			c.Lag, c.TagLag, c.BootTime, c.StopTime, c.PageSize =
				40*time.Millisecond, 80*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond, 2
		},
		"tokens bound by refusals": func(c *ec2test.Config) { c.RefusedBind = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := account()
			change(&c)
			c.Run = func(ctx context.Context, _ ec2test.Boot) { <-ctx.Done() }
			s, endpoint := serve(t, c)
			p := open(t, configuration(endpoint))
			// EC2 names no boots.
			providertest.Run(t, "ec2 (our server)", providertest.Harness{
				Open:     func() (provider.Provider, error) { return p, nil },
				Kill:     func(m provider.Machine) error { return s.Kill(m.Ref) },
				Remains:  func(m provider.Machine) string { return s.Remains(m.Ref) },
				Print:    func(m provider.Machine, text string) error { return s.Print(m.Ref, text) },
				Template: plain,
			}, "RestartBootsAnew", "RestartOfOneBoot")
			if doubles := s.Doubles(); len(doubles) > 0 {
				t.Errorf("instances that had two machines: %v", doubles)
			}
		})
	}
}
