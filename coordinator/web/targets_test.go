package web_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/coordinator/web"
	"github.com/leasehold/leasehold/store"
)

// proves LB-4, SAFE-18: what Prometheus asks for is answered from memory, also while etcd is away;
// a part of a group is no answer
func TestTargetsForPrometheus(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	keys := store.KeysOf("test")
	g := store.DefaultGroup()
	g.Name, g.Provider, g.Paused = "web", "mem", true
	g.Complete()
	s.put(keys.Group("web"), store.Encode(g))
	for id, address := range map[string]string{"web-0-a": "10.0.0.1:8080", "web-1-b": "fd00::2", "web-x-c": "host"} {
		rec := store.Instance{
			Schema: 1, ID: id, Group: "web", Slot: -1, Phase: store.Running, Zone: "a", Address: address,
			Spec: store.InstanceSpec{Provider: "mem"},
		}
		if id == "web-1-b" {
			rec.Slot, rec.Managed = 1, true
		}
		s.put(keys.Instance(id), store.Encode(rec))
	}
	replica, conn, _ := s.start("a")
	list := func(path string) string {
		code, body, h := replica.get(path)
		if code != http.StatusOK || h.Get("Content-Type") != "application/json" || h.Get("Age") == "" {
			return body
		}
		var got []struct {
			Targets []string
			Labels  map[string]string
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatalf("%s: %v in %s", path, err, body)
		}
		var all []string
		for _, e := range got {
			all = append(all, strings.Join(e.Targets, ",")+" "+e.Labels["__meta_leasehold_instance"]+
				" "+e.Labels["__meta_leasehold_group"]+e.Labels["__meta_leasehold_slot"]+e.Labels["__meta_leasehold_zone"])
		}
		return strings.Join(all, "; ")
	}
	const all = "10.0.0.1:8080 web-0-a weba; fd00::2 web-1-b web1a; host web-x-c weba"
	eventually(t, "the instances", func() bool { return list("/discovery/prometheus") == all })
	for _, c := range []struct{ path, want string }{
		{"?group=web", all},
		{"?group=web&port=9100", "10.0.0.1:9100 web-0-a weba; [fd00::2]:9100 web-1-b web1a; host:9100 web-x-c weba"},
		{"?group=nosuch", "no such group\n"},
		{"?group=web&port=x", "port: must be 1 to 65535\n"},
		{"?group=web&port=70000", "port: must be 1 to 65535\n"},
	} {
		if got := list("/discovery/prometheus" + c.path); strings.TrimSpace(got) != strings.TrimSpace(c.want) {
			t.Errorf("%s: %s, want %s", c.path, got, c.want)
		}
	}
	conn.Faults().Cut()
	if got := list("/discovery/prometheus"); got != all {
		t.Errorf("without etcd: %s, want %s", got, all)
	}
	conn.Faults().Mend()

	// Another instance's record is lost, and this replica has never read it.
	s.put(keys.Status("db"), store.Encode(store.Status{Schema: 1, Group: "db", Records: new(1)}))
	eventually(t, "the loss", func() bool {
		code, _, _ := replica.get("/discovery/prometheus")
		return code == http.StatusServiceUnavailable
	})
	if got := list("/discovery/prometheus?group=web"); got != all {
		t.Errorf("another group, while records of one are lost: %s", got)
	}
	if code, body, _ := replica.get("/discovery/prometheus?group=db"); code != http.StatusServiceUnavailable {
		t.Errorf("a group of which records are lost: %d %s", code, body)
	}

	site := open(t, web.Config{Listen: loopback}, web.Deps{})
	if code, body, _ := site.get("/discovery/prometheus"); code != http.StatusServiceUnavailable {
		t.Errorf("a replica that has read nothing: %d %s", code, body)
	}
}
