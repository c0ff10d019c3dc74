package discovery_test

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/discovery"
	"github.com/leasehold/leasehold/store"
)

var keys = store.KeysOf("test")

// served returns the instances in service after changes to a shard with an instance web-0 that
// works.
func served(t *testing.T, change func(c *cache.Content, put func(key string, record any), drop func(key string)),
	groups ...string,
) string {
	t.Helper()
	rev := store.Revision(10)
	c := cache.FromListing(keys, store.Listing{Revision: rev})
	apply := func(e store.Event) { rev++; c.Apply(keys, e); c.Revision = rev }
	put := func(key string, record any) {
		apply(store.Event{KV: store.KV{Key: key, Value: store.Encode(record), Created: rev, Modified: rev}})
	}
	drop := func(key string) { apply(store.Event{KV: store.KV{Key: key, Modified: rev}, Deleted: true}) }
	put(keys.Shard(), store.Shard{Schema: 1, ID: "s", Settings: store.DefaultShardSettings()})
	put(keys.Status("web"), store.Status{Schema: 1, Group: "web", Records: new(1)})
	put(keys.Instance("web-0"), works)
	put(keys.Alive("web-0"), store.Alive{Schema: 1, Instance: "web-0", BootID: "b", State: store.StreamOpen})
	put(keys.Report("web-0"), store.Report{Schema: 1, Instance: "web-0", BootID: "b", Healthy: true})
	if change != nil {
		change(c, put, drop)
	}
	var all []string
	for _, e := range discovery.Endpoints(c, groups...) {
		all = append(all, e.Instance+"@"+e.Address)
	}
	return strings.Join(all, " ")
}

var works = store.Instance{
	Schema: 1, ID: "web-0", Group: "web", Phase: store.Running, Managed: true, Zone: "a", Address: "10.0.0.1:80",
}

// Only what is known of an instance for certain takes it out: never that something is missing.
//
// proves LB-4, SAFE-18
func TestWhoIsInService(t *testing.T) {
	const in = "web-0@10.0.0.1:80"
	phase := func(p store.Phase) func(*cache.Content, func(string, any), func(string)) {
		return func(_ *cache.Content, put func(string, any), _ func(string)) {
			rec := works
			rec.Phase = p
			put(keys.Instance("web-0"), rec)
		}
	}
	for name, test := range map[string]struct {
		change func(c *cache.Content, put func(key string, record any), drop func(key string))
		groups []string
		want   string
	}{
		"works":                {nil, nil, in},
		"of this group":        {nil, []string{"db", "web"}, in},
		"of another":           {nil, []string{"db"}, ""},
		"coming up":            {phase(store.Checking), nil, ""},
		"drains":               {phase(store.Draining), nil, ""},
		"goes":                 {phase(store.Deleting), nil, ""},
		"its machine restarts": {phase(store.Stopping), nil, ""},
		"says that it is unhealthy": {func(_ *cache.Content, put func(string, any), _ func(string)) {
			put(keys.Report("web-0"), store.Report{Schema: 1, Instance: "web-0", BootID: "b"})
		}, nil, ""},
		"lost its lease": {func(_ *cache.Content, _ func(string, any), drop func(string)) {
			drop(keys.Alive("web-0"))
		}, nil, in},
		"its report is lost": {func(_ *cache.Content, _ func(string, any), drop func(string)) {
			drop(keys.Report("web-0"))
		}, nil, in},
		"its report cannot be read": {func(_ *cache.Content, put func(string, any), _ func(string)) {
			put(keys.Report("web-0"), "garbage")
		}, nil, in},
		"its record is lost": {func(_ *cache.Content, _ func(string, any), drop func(string)) {
			drop(keys.Instance("web-0"))
		}, nil, in},
		"its record is lost, and an operator goes on without it": {
			func(c *cache.Content, put func(string, any), drop func(string)) {
				drop(keys.Instance("web-0"))
				put(keys.Shard(), store.Shard{
					Schema: 1, ID: "s", Settings: store.DefaultShardSettings(), Reviewed: &store.Reviewed{Seen: c.Revision},
				})
			}, nil, "",
		},
		"its record cannot be read": {func(_ *cache.Content, put func(string, any), _ func(string)) {
			put(keys.Instance("web-0"), "garbage")
		}, nil, in},
		"its record was deleted on purpose": {func(c *cache.Content, put func(string, any), drop func(string)) {
			put(keys.Gone(keys.Instance("web-0")), store.Gone{
				Schema: 1, Revision: c.Instances["web-0"].Modified, Instance: "web-0", Group: "web",
			})
			drop(keys.Instance("web-0"))
		}, nil, ""},
		"a storm, and a hold": {func(_ *cache.Content, put func(string, any), drop func(string)) {
			put(keys.Shard(), store.Shard{
				Schema: 1, ID: "s", Settings: store.DefaultShardSettings(), Hold: &store.Hold{By: "ann"},
			})
			put(keys.Status("web"), store.Status{Schema: 1, Group: "web", Storm: &store.Storm{}})
			drop(keys.Alive("web-0"))
		}, nil, in},
		"no address": {func(_ *cache.Content, put func(string, any), _ func(string)) {
			rec := works
			rec.Address = ""
			put(keys.Instance("web-0"), rec)
		}, nil, ""},
		"several": {func(_ *cache.Content, put func(string, any), _ func(string)) {
			rec := works
			rec.ID, rec.Group, rec.Address = "db-0", "db", "::1"
			put(keys.Instance("db-0"), rec)
		}, nil, "db-0@::1 " + in},
	} {
		t.Run(name, func(t *testing.T) {
			if got := served(t, test.change, test.groups...); got != test.want {
				t.Errorf("in service: %q, want %q", got, test.want)
			}
		})
	}
}
