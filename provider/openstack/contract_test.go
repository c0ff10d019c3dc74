package openstack

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/openstack/openstacktest"
	"github.com/leasehold/leasehold/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newCloud(t *testing.T) *openstacktest.Cloud {
	t.Helper()
	c := openstacktest.New()
	t.Cleanup(c.Close)
	return c
}

// secretsOf returns the shard's secrets.
func secretsOf(name string) (string, error) {
	switch name {
	case "openstack":
		return openstacktest.Password, nil
	case "app":
		return openstacktest.CredentialSecret, nil
	}
	return "", fmt.Errorf("there is no secret %s", name)
}

func on(t *testing.T, c *openstacktest.Cloud, change func(*Config)) *Provider {
	t.Helper()
	config := Config{
		AuthURL: c.URL + "/identity/v3", Region: "one", User: openstacktest.User, Project: openstacktest.Project,
		PasswordSecret: "openstack", Image: openstacktest.Image, Flavors: []string{openstacktest.Flavor},
		Zones: map[string]Zone{"a": {AvailabilityZone: "nova"}, "b": {}}, CallTimeout: "30s", Rate: 5000,
	}
	if change != nil {
		change(&config)
	}
	p, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	p.UseSecrets(secretsOf)
	t.Cleanup(p.idle)
	return p
}

// proves PROV-1, PROV-4, PROV-8
func TestContract(t *testing.T) {
	c := newCloud(t)
	c.Add(openstacktest.Server{
		Name: "theirs", Status: "ACTIVE", Metadata: map[string]string{"role": "db"},
		Launched: true,
	})
	c.Set(func(c *openstacktest.Cloud) { c.Page = 2 })
	p := on(t, c, nil)
	providertest.Run(t, "openstack (our server)", providertest.Harness{
		Open: func() (provider.Provider, error) { return p, nil },
		Kill: func(m provider.Machine) error { return c.Kill(m.Ref) },
		Poll: 10 * time.Millisecond,
		Remains: func(m provider.Machine) string {
			for _, s := range c.Servers() {
				if s.ID == m.Ref {
					return "server " + s.ID
				}
			}
			return ""
		},
		Print: func(m provider.Machine, text string) error {
			c.Change(m.Ref, func(s *openstacktest.Server) { s.Console += text })
			return nil
		},
	}, "RestartBootsAnew", "RestartOfOneBoot")
	if n := c.Calls("POST tokens"); n != 1 {
		t.Errorf("the suite took %d tokens", n)
	}
}
