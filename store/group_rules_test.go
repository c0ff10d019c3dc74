package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
)

// The reference page tells the defaults that a group gets.
func TestDefaultsAreShown(t *testing.T) {
	g := store.DefaultGroup()
	g.Complete()
	var values map[string]any
	if err := json.Unmarshal(store.Encode(g), &values); err != nil {
		t.Fatal(err)
	}
	compared := 0
	must := []string{
		"name", "provider", "checks[].http.port", "checks[].tcp.port", "checks[].grpc.port",
		"checks[].exec.run", "load_balancers[].name", "files[].path",
		"windows[].from", "windows[].for", "files[].certificate.authority", "files[].certificate.names",
		"files[].certificate.key",
		"scale.max", "scale.targets[].metric", "scale.targets[].value", "scale.schedule[].cron", "rollout.analysis[].from",
		"drills[].cron",
	}
	for _, f := range store.Fields {
		if (f.Default == "") != slices.Contains(must, f.Path) {
			t.Errorf("%s: the reference tells the default %q", f.Path, f.Default)
		}
		var value any = values
		for step := range strings.SplitSeq(f.Path, ".") {
			m, _ := value.(map[string]any)
			value = m[step]
		}
		switch {
		case f.Default == "" || value == nil:
		case f.Type == "integer" || f.Type == "boolean" || f.Type == "string":
			compared++
			if fmt.Sprint(value) != f.Default {
				t.Errorf("%s: the reference tells %s, it is %v", f.Path, f.Default, value)
			}
		case f.Type == "duration" && f.Path != "report.lease_ttl":
			compared++
			want, err := time.ParseDuration(f.Default)
			if text, _ := value.(string); err != nil || text != want.String() {
				t.Errorf("%s: the reference tells %s, it is %v", f.Path, f.Default, value)
			}
		}
	}
	if compared < 30 {
		t.Errorf("only %d defaults were compared", compared)
	}
}

// Every field says what it is and is judged by its own range; the number of the rule comes with the
// error.
func TestFieldsSayTheirRule(t *testing.T) {
	for _, f := range store.Fields {
		if f.Path == "" || f.Type == "" || f.Allowed == "" || f.Doc == "" {
			t.Errorf("%+v does not say all", f)
		}
		switch field, _, nested := strings.Cut(f.Path, "."); {
		case !nested && f.Rule == "" && !slices.Contains([]string{"name", "size", "provider"}, field) &&
			field != "workload":
			t.Errorf("%s names no rule", f.Path)
		case nested && f.Rule == "" && field != "template" && field != "workload":
			t.Errorf("%s names no rule", f.Path)
		}
	}
}

// Each questionable choice is warned of, by itself, and what is sensible is not.
//
// proves HEAL-3, EXP-2, SAFE-9, SEC-6, SPOT-1
func TestEachWarning(t *testing.T) {
	minute, never := store.Duration(time.Minute), store.Duration(0)
	for _, test := range []struct {
		name string
		set  func(g *store.Group)
		want []string // how each warning begins
	}{
		{"defaults", func(*store.Group) {}, nil},
		{"no expansion", func(g *store.Group) { g.Budget.MaxExpansion = 0 }, []string{"budget: max_expansion and"}},
		{
			"no expansion, restarts", func(g *store.Group) { g.Budget.MaxExpansion, g.Heal.Policy = 0, store.HealRestart },
			nil,
		},
		{"no expansion, spot", func(g *store.Group) {
			g.Budget.MaxExpansion, g.Heal.Policy, g.Spot.Enabled, g.Spot.Source = 0, store.HealRestart, true,
				store.NoticeAWS
		}, []string{"budget: max_expansion is 0"}},
		{"no expansion, eligible age", func(g *store.Group) {
			g.Budget.MaxExpansion, g.Heal.Policy, g.Expiry.EligibleAge = 0, store.HealRestart, &minute
		}, []string{"budget: max_expansion is 0"}},
		{"no expansion, forced age", func(g *store.Group) {
			g.Budget.MaxExpansion, g.Heal.Policy, g.Expiry.ForcedAge = 0, store.HealRestart, &minute
		}, []string{"budget: max_expansion is 0"}},
		{"no expansion, ages off", func(g *store.Group) {
			g.Budget.MaxExpansion, g.Heal.Policy, g.Expiry.EligibleAge, g.Expiry.ForcedAge = 0, store.HealRestart,
				&never, &never
		}, nil},
		{"an age, expansion", func(g *store.Group) { g.Expiry.ForcedAge = &minute }, nil},
		{"fences in time", func(g *store.Group) {
			g.Report.OnLeaseLost.Do, g.StopTimeout = store.LeaseLostStop, g.Report.LeaseTTL/3
		}, []string{"report.on_lease_lost"}},
		{"fences too slowly", func(g *store.Group) {
			g.Report.OnLeaseLost.Do, g.StopTimeout = store.LeaseLostStop, g.Report.LeaseTTL/3+1
		}, []string{"report.on_lease_lost", "stop_timeout"}},
		{
			"fences by a command", func(g *store.Group) { g.Report.OnLeaseLost.Do = store.LeaseLostRun },
			[]string{"report.on_lease_lost"},
		},
		{
			"secrets without a workload", func(g *store.Group) { g.Secrets = map[string]string{"A": "a"} },
			[]string{"secrets"},
		},
		{"secrets with one", func(g *store.Group) {
			g.Secrets, g.Workload.Run = map[string]string{"A": "a"}, []string{"x"}
		}, nil},
		{"spot without a source", func(g *store.Group) { g.Spot.Enabled = true }, []string{"spot"}},
		{"spot with one", func(g *store.Group) { g.Spot.Enabled, g.Spot.Source = true, store.NoticeAWS }, nil},
	} {
		g := store.DefaultGroup()
		g.Complete()
		test.set(&g)
		got := g.Warnings()
		ok := len(got) == len(test.want)
		for i := range min(len(got), len(test.want)) {
			ok = ok && strings.HasPrefix(got[i], test.want[i])
		}
		if !ok {
			t.Errorf("%s: warned of %q, want %q", test.name, got, test.want)
		}
	}
}

// A spec is one JSON object and nothing else.
func TestNothingFollowsASpec(t *testing.T) {
	spec := `{"schema": 1, "name": "web", "provider": "process"}`
	if _, err := store.ReadGroup([]byte(spec + "\n ")); err != nil {
		t.Error(err)
	}
	asWritten := strings.Replace(spec, `{"schema": 1, `, `{"schema":1,`, 1)
	for _, bad := range []string{spec + " {}", spec + spec, spec + "x", asWritten + " {}", asWritten + asWritten} {
		if _, err := store.ReadGroup([]byte(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// oddStore answers the n-th part of a listing with another revision.
type oddStore struct {
	store.Store
	answers []store.Revision // for each part; the true one for -1
	parts   int
}

func (s *oddStore) ListPart(ctx context.Context, prefix, from string, most int, at store.Revision) (store.Part, error) {
	p, err := s.Store.ListPart(ctx, prefix, from, most, at)
	if s.parts < len(s.answers) && s.answers[s.parts] >= 0 {
		p.Revision = s.answers[s.parts]
	}
	s.parts++
	return p, err
}

// What is listed is of one revision: an answer for another one is not believed, and all is listed
// again.
func TestPartsOfOtherRevisions(t *testing.T) {
	for name, answers := range map[string][]store.Revision{"none": {0}, "a later part of another one": {-1, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newMemory(t).Connect()
				put(t, s, shard.Group("a"), "1")
				put(t, s, shard.Served(), "2")
				p, ctx := newCache(t), t.Context()
				ctx, cancel := context.WithCancel(ctx)
				wanted := []string{shard.Of(store.KindGroups), shard.Served()}
				done := make(chan error)
				go func() {
					done <- store.Follow(ctx, &oddStore{Store: s, answers: answers}, shard.Prefix(), wanted, p)
				}()
				pass(10 * time.Second)
				if now := p.now(); len(now.interrupted) != 1 ||
					!strings.Contains(fmt.Sprint(now.interrupted), "another revision") {
					t.Errorf("interrupted by %v, want one answer for another revision", now.interrupted)
				}
				p.showsAll(s, wanted...)
				cancel()
				if err := <-done; !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		})
	}
}

// Prefixes that lie in one another are listed once: no part holds a key twice, and all of them are
// in order.
func TestFollowOverlappingPrefixes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t).Connect()
		put(t, s, shard.Group("a"), "1")
		put(t, s, shard.Group("b"), "2")
		put(t, s, shard.Served(), "3")
		p := newCache(t) // it complains of keys that come twice, or out of order
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- store.Follow(ctx, s, shard.Prefix(),
				[]string{shard.Group("b"), shard.Of(store.KindGroups), shard.Prefix()}, p)
		}()
		synctest.Wait()
		p.showsAll(s, shard.Prefix())
		cancel()
		<-done
	})
}
