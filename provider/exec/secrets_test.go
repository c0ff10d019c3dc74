package exec_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/exec"
)

// A program that repeats what it got, in its log or in its answer, shows no secret: neither the log
// nor the error, which goes to the group's status, has the value or the join token.
//
// proves SEC-6, SEC-7
func TestWhatAProgramRepeatsHasNoSecrets(t *testing.T) {
	for name, script := range map[string]string{
		"its log":          `echo "$request" >&2; exit 1`,
		"a trace":          `set -x; curl() { :; }; curl -H "Authorization: Bearer $(grep -o 'value of [a-z-]*' <<<"$request")"; exit 1`,
		"a message":        `said=$(tr -d '"\\\n' <<<"$request"); echo '{"error": {"code": "quota", "message": "'"${said: -400}"'", "scope": "value of acme-token"}}'`,
		"an unknown error": `echo '{"error": {"code": "value of acme-token"}}'`,
	} {
		var log bytes.Buffer
		p, _ := scripted(t, script, func(c *exec.Config) {
			c.Secrets, c.Logger = map[string]string{"token": "acme-token"}, slog.New(slog.NewTextHandler(&log, nil))
		})
		p.(provider.SecretUser).UseSecrets(func(name string) (string, error) { return "value of " + name, nil })
		b := provider.Bootstrap{Instance: "web-0-a", Group: "web", Shard: "s1", JoinToken: "K4EVYO4LDNWUD4D5"}
		_, err := p.Create(t.Context(), provider.CreateRequest{Zone: p.Capabilities().Zones[0], Bootstrap: b})
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		for where, text := range map[string]string{"the error": err.Error(), "the log": log.String()} {
			for _, value := range []string{"value of acme-token", "K4EVYO4LDNWUD4D5"} {
				if strings.Contains(text, value) {
					t.Errorf("%s: %s has %q: %s", name, where, value, text)
				}
			}
		}
		if !strings.Contains(err.Error()+log.String(), "[secret token]") {
			t.Errorf("%s: nothing says that a secret was hidden: %v; log: %s", name, err, &log)
		}
	}
}

// A machine's reason goes to the status and the journal as well.
//
// proves SEC-6
func TestAMachinesReasonHasNoSecrets(t *testing.T) {
	p, _ := scripted(t, `m='{"instance": "web-0-a", "shard": "s1", "ref": "r", "state": "failed", "why": "401: value of acme-token"}'
case $request in
*'"method":"list"'*) echo '{"result": {"machines": ['"$m"'], "complete": true}}' ;;
*) echo '{"result": '"$m"'}' ;;
esac`, func(c *exec.Config) { c.Secrets = map[string]string{"token": "acme-token"} })
	p.(provider.SecretUser).UseSecrets(func(name string) (string, error) { return "value of " + name, nil })
	m, err := p.Create(t.Context(), provider.CreateRequest{
		Zone: p.Capabilities().Zones[0], Bootstrap: provider.Bootstrap{Instance: "web-0-a", Group: "web", Shard: "s1"},
	})
	all, listErr := p.List(t.Context(), "s1")
	if err != nil || listErr != nil || len(all) != 1 {
		t.Fatalf("%v, %v, %v", err, all, listErr)
	}
	for _, why := range []string{m.Why, all[0].Why} {
		if why != "401: [secret token]" {
			t.Errorf("%q", why)
		}
	}
}
