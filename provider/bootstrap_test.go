package provider_test

import (
	"encoding/json"
	"testing"

	"github.com/leasehold/leasehold/provider"
)

// FuzzReadBootstrap reads anything for a bootstrap document. What is taken has all that an agent
// cannot do without.
//
// proves SEC-5
func FuzzReadBootstrap(f *testing.F) {
	good, err := json.Marshal(provider.Bootstrap{
		Schema: provider.BootstrapSchema, Instance: "web-0", Shard: "s", Coordinators: []string{"127.0.0.1:1"},
		ReportInterval: "5s", ReconnectMin: "1s",
		ReconnectMax: "30s", StopTimeout: "30s",
	})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := provider.ReadBootstrap(good); err != nil {
		f.Fatalf("a document as it should be is refused: %v", err)
	}
	for _, s := range []string{
		string(good), "", "null", "[]", `{"schema":99}`, `{"instance":"../x"}`,
		`{"coordinators":[""],"vars":{"":null}}`, `{"report_interval":"-1h"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := provider.ReadBootstrap(data)
		if err == nil && (b.Instance == "" || b.Shard == "" || len(b.Coordinators) == 0) {
			t.Errorf("%+v is taken", b)
		}
	})
}
