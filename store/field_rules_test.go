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

	"github.com/leasehold/leasehold/store"
)

// setField sets the field at a path of a group to a value, as a group file does.
func setField(t *testing.T, g *store.Group, path string, value any) {
	t.Helper()
	for _, step := range slices.Backward(strings.Split(path, ".")) {
		value = map[string]any{step: value}
	}
	if err := json.Unmarshal(store.Encode(value), g); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// An error about a field shows the value as it is, and names the field's rule.
func TestWrongValuesAreShown(t *testing.T) {
	for _, test := range []struct {
		path  string
		value any
		shown string
		rule  string
	}{
		{"name", "A", `"A"`, ""},
		{"size", -1, "-1", ""},
		{"lifecycle", "job", `"job"`, "REC-12"},
		{"labels", map[string]string{"a b": "c"}, "map[a b:c]", "REC-10"},
		{"provider", "X", `"X"`, ""},
		{"template.instance_type", strings.Repeat("x", 101), `"` + strings.Repeat("x", 101) + `"`, ""},
		{"template.zones", []string{"a", "a"}, "[a a]", "REC-3"},
		{"template.settings", map[string]any{"a": strings.Repeat("x", 1<<16)}, `"65544 bytes"`, "PROV-3"},
		{"workload.run", []string{"", "x"}, "[ x]", ""},
		{"vars", map[string]string{"1": "x"}, "map[1:x]", "ROLL-2"},
		{"secrets", map[string]string{"A": "B C"}, "map[A:B C]", "SEC-6"},
		{"report.lease_ttl", "1h0m1s", "1h0m1s", "DET-2"},
		{"report.on_lease_lost", "reboot", `"reboot"`, "SAFE-9"},
		{"registration_timeout", "1s", "1s", "DET-11"},
		{"heal.policy", "pray", `"pray"`, "HEAL-1"},
		{"budget.max_expansion", 10001, "10001", "HEAL-2"},
		{"budget.max_unavailable", 10001, "10001", "HEAL-3"},
		{"rollout.strategy", "now", `"now"`, "ROLL-1"},
		{"rollout.minimal_action", "none", `"none"`, "ROLL-2"},
		{"expiry.eligible_age", "30s", "30s", "EXP-1"},
		{"drain.hook", []string{"", "x"}, "[ x]", "DRAIN-1"},
		{"spot.source", "moon", `"moon"`, "SPOT-1"},
		{"spot.file", "/x", `"/x"`, "SPOT-1"},
		{"spot.endpoint", "x", `"x"`, "SPOT-1"},
	} {
		g := web()
		setField(t, &g, test.path, test.value)
		errs := fieldErrors(g.Validate())
		if len(errs) != 1 || errs[0].Path != test.path || errs[0].Value != test.shown || errs[0].Rule != test.rule {
			t.Errorf("%s: %v is refused as %v, want %s (%s)", test.path, test.value, g.Validate(), test.shown,
				test.rule)
		}
	}
}

// What is as long as it may be is taken, and one character more is not.
func TestLengthsAtTheirBounds(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, test := range []struct {
		path   string
		source string
		value  func(more int) any
	}{
		{"template.zones", store.NoticeNone, func(more int) any { return []string{long(100 + more)} }},
		{"workload.run", store.NoticeNone, func(more int) any { return []string{"a", long(4096 + more)} }},
		{"spot.file", store.NoticeFile, func(more int) any { return "/" + long(4095+more) }},
		{"spot.endpoint", store.NoticeAWS, func(more int) any { return "http://" + long(493+more) }},
	} {
		for more, ok := range map[int]bool{0: true, 1: false} {
			g := web()
			g.Spot.Source = test.source
			setField(t, &g, test.path, test.value(more))
			if err := g.Validate(); (err == nil) != ok {
				t.Errorf("%s with %d more than the most: %.100v", test.path, more, err)
			}
		}
	}
}

// The roles go from the weakest to the strongest, and each may do what the one before may.
//
// proves SEC-4
func TestRolesAndWhatTheyMay(t *testing.T) {
	if got := store.Roles(); !slices.Equal(got,
		[]store.Role{store.RoleViewer, store.RoleOperator, store.RoleCoordinator}) {
		t.Errorf("roles are %v", got)
	}
	for role, want := range map[store.Role]string{
		store.RoleViewer:      "[/leasehold/ /leasehold/test/*]",
		store.RoleCoordinator: "[/leasehold/ /leasehold/test/*w]",
		store.RoleOperator: "[/leasehold/ /leasehold/test/* /leasehold/test/backupw /leasehold/test/groups/*w /leasehold/test/requests/*w " +
			"/leasehold/test/secrets/*w /leasehold/test/shardw /leasehold/test/static/*w]",
	} {
		var got []string
		for _, p := range shard.Permissions(role) {
			text := p.Key
			if p.Prefix {
				text += "*"
			}
			if p.Write {
				text += "w"
			}
			got = append(got, text)
			if p.End != "" || p.Blind {
				t.Errorf("%s is granted %+v", role, p)
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s may %v, want %s", role, got, want)
		}
	}
}

func TestKeysOfOthers(t *testing.T) {
	if got := shard.Prefix(); got != "/leasehold/test/" {
		t.Errorf("the shard's prefix is %s", got)
	}
	for key, want := range map[string]string{
		"/leasehold/test/groups/web": "test", "/leasehold/test/": "test", "/leasehold/test": "", "/leasehold//x": "",
		"other/test/x": "", "": "",
	} {
		if got, ok := store.ShardOf(key); ok != (want != "") || ok && got != want {
			t.Errorf("%q belongs to the shard %q, %t, want %q", key, got, ok, want)
		}
	}
}

// A record that cannot be written is a bug, and nothing that looks like a record is written for it.
func TestEncodePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a function was written as a record")
		}
	}()
	store.Encode(func() {})
}

// A session that is lost says so, whatever its work returns, and an error of the work is not
// forgotten.
func TestWhatALostSessionReturns(t *testing.T) {
	failed := errors.New("failed")
	for name, test := range map[string]struct {
		work func(ctx context.Context) error
		also error
	}{
		"work returns nothing":           {func(context.Context) error { return nil }, nil},
		"work returns its own error":     {func(context.Context) error { return failed }, failed},
		"work returns why it was ended":  {context.Cause, nil},
		"work returns its context's end": {func(ctx context.Context) error { return ctx.Err() }, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newMemory(t)
				err := store.NewSessions(db.Connect(), sessionTTL).Run(t.Context(), func(ctx context.Context, lease store.Lease) error {
					db.Faults().DropLease(lease.ID)
					<-ctx.Done()
					return test.work(ctx)
				})
				if !errors.Is(err, store.ErrSessionLost) || test.also != nil && !errors.Is(err, test.also) {
					t.Errorf("got %v", err)
				}
				if n := strings.Count(err.Error(), store.ErrSessionLost.Error()); n != 1 {
					t.Errorf("%q says %d times that the session was lost", err, n)
				}
			})
		})
	}
}
