package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

// A shard begins with an ID that no other has, unless it gets the one that it had before.
func TestNewShard(t *testing.T) {
	begun := time.Now()
	one, err := store.NewShard("main", "")
	if err != nil {
		t.Fatal(err)
	}
	two, _ := store.NewShard("main", "")
	if len(one.ID) != 16 || one.ID == two.ID || one.Schema != store.Schema || one.Name != "main" ||
		one.Generation != 1 || one.Created.Before(begun.Add(-time.Second)) ||
		string(store.Encode(one.Settings)) != string(store.Encode(store.DefaultShardSettings())) {
		t.Errorf("%+v, another %+v", one, two)
	}
	if again, _ := store.NewShard("main", "known"); again.ID != "known" {
		t.Errorf("asked for the ID known, it is %s", again.ID)
	}
}

// answering is a store whose commits answer something else than what they did.
type answering struct {
	store.Store
	commit func() error // nil: as it is
	get    func() error
	list   func() error
}

func (a answering) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	rev, err := a.Store.Commit(ctx, txn)
	if a.commit != nil {
		return 0, a.commit()
	}
	return rev, err
}

func (a answering) Get(ctx context.Context, key string) (store.KV, error) {
	if a.get != nil {
		return store.KV{}, a.get()
	}
	return a.Store.Get(ctx, key)
}

func (a answering) ListPart(ctx context.Context, prefix, from string, most int, at store.Revision) (store.Part, error) {
	if a.list != nil {
		return store.Part{}, a.list()
	}
	return a.Store.ListPart(ctx, prefix, from, most, at)
}

// A shard is created once. An answer that was lost is cleared up by reading.
func TestCreateShard(t *testing.T) {
	keys := store.KeysOf("main")
	mine, other := store.Shard{ID: "mine", Name: "main"}, store.Shard{ID: "other", Name: "main"}
	lost := func() error { return store.ErrUnknown }
	broken := func() error { return errors.New("broken") }
	for name, test := range map[string]struct {
		before *store.Shard
		how    answering
		want   string // of the error; "": it was created
	}{
		"new":                       {nil, answering{}, ""},
		"there is another":          {&other, answering{}, store.ErrExists.Error()},
		"its answer was lost":       {nil, answering{commit: lost}, ""},
		"lost, and it is another's": {&other, answering{commit: lost}, store.ErrExists.Error()},
		"it fails":                  {nil, answering{commit: broken}, "create shard main: broken"},
		"lost, and cannot be read":  {nil, answering{commit: lost, get: broken}, "create shard main: broken"},
	} {
		t.Run(name, func(t *testing.T) {
			db := memstore.New(memstore.Config{})
			defer db.Close()
			s := db.Connect()
			if test.before != nil {
				if err := store.CreateShard(t.Context(), s, keys, *test.before); err != nil {
					t.Fatal(err)
				}
			}
			test.how.Store = s
			err := store.CreateShard(t.Context(), test.how, keys, mine)
			if said := fmt.Sprint(err); (err == nil) != (test.want == "") || err != nil && said != test.want {
				t.Fatalf("%v, want %q", err, test.want)
			}
			kv, getErr := s.Get(t.Context(), keys.Shard())
			if getErr != nil {
				t.Fatal(getErr)
			}
			v, decodeErr := store.Decode[store.Shard](kv)
			if want := test.before; decodeErr != nil || want != nil && v.Record.ID != want.ID ||
				want == nil && v.Record.ID != mine.ID {
				t.Errorf("the shard is %+v, %v", v.Record, decodeErr)
			}
		})
	}
}

// A shard without a record of its own, but with keys that only a leader writes, has lost it.
func TestLeaderRecords(t *testing.T) {
	keys := store.KeysOf("main")
	for kinds, want := range map[string]string{
		"":                        "0 ",
		"groups":                  "0 ",
		store.KindInstances:       "3 " + store.KindInstances,
		store.KindStatus:          "3 " + store.KindStatus,
		"instances groups status": "3 " + store.KindInstances,
	} {
		db := memstore.New(memstore.Config{})
		t.Cleanup(db.Close)
		s := db.Connect()
		for _, kind := range strings.Fields(strings.NewReplacer("instances", store.KindInstances, "status", store.KindStatus,
			"groups", store.KindGroups).Replace(kinds)) {
			for i := range 3 {
				if _, err := s.Commit(t.Context(), store.Txn{Writes: []store.Write{
					store.Put(keys.Of(kind)+fmt.Sprint(i), []byte("{}")),
				}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		n, kind, err := store.LeaderRecords(t.Context(), s, keys)
		if got := fmt.Sprint(n, " ", kind); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", kinds, got, err, want)
		}
		if n, kind, err := store.LeaderRecords(t.Context(),
			answering{Store: s, list: func() error { return errors.New("broken") }},
			keys); err == nil || n != 0 || kind != "" {
			t.Errorf("a failing list: %d %q %v", n, kind, err)
		}
	}
}

// Settings are set by name, fit beside each other, and what is refused is told with what is
// allowed.
//
// proves REC-20
func TestSettingsBesideEachOther(t *testing.T) {
	set := func(pairs ...string) store.ShardSettings {
		t.Helper()
		s := store.DefaultShardSettings()
		for i := 0; i < len(pairs); i += 2 {
			if err := s.Set(pairs[i], pairs[i+1]); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	for _, test := range []struct {
		s    store.ShardSettings
		says []string // of each that is wrong
	}{
		{set(), nil},
		{set("reconnect_min", "30s", "reconnect_max", "30s"), nil},
		{set("reconnect_min", "30s", "reconnect_max", "29s"), []string{
			"reconnect_min: 30s: ",
			"at most reconnect_max (29s)",
		}},
		{set("eligible_age", "1h", "forced_age", "1h"), nil},
		{set("eligible_age", "0", "forced_age", "1h"), nil},
		{set("eligible_age", "1h", "forced_age", "0"), nil},
		{set("eligible_age", "2h", "forced_age", "1h"), []string{"eligible_age: 2h", "at most forced_age (1h"}},
		{store.ShardSettings{}, []string{"provider_poll: 0s: must be 1s to 10m0s (DET-12)"}},
	} {
		wrong := test.s.Wrong()
		if (len(wrong) > 0) != (len(test.says) > 0) {
			t.Errorf("wrong: %v, want %q", wrong, test.says)
		}
		for _, part := range test.says {
			if !slices.ContainsFunc(wrong, func(e *store.FieldError) bool { return strings.Contains(e.Error(), part) }) {
				t.Errorf("%v does not say %q", wrong, part)
			}
		}
	}
	s := set("provider_poll", "7s", "orphan_grace", "2h")
	if err := s.Set("provider_poll", "default"); err != nil || s.Value("provider_poll") != "5s" ||
		s.Value("orphan_grace") != "2h0m0s" ||
		s.Value("nothing") != "" {
		t.Errorf("%v, %s, %s", err, s.Value("provider_poll"), s.Value("orphan_grace"))
	}
	var e *store.FieldError
	if err := s.Set("povider_poll", "7s"); !errors.As(err, &e) || e.Path != "povider_poll" || e.Name != "povider_poll" ||
		len(e.Known) != len(store.Settings) || !slices.Contains(e.Known, "provider_poll") {
		t.Errorf("%+v", e)
	}
	if err := s.Set("provider_poll", "0s"); !errors.As(err, &e) || e.Path != "provider_poll" || e.Rule != "DET-12" ||
		e.Value != "0s" {
		t.Errorf("%+v", e)
	}
	for _, one := range store.Settings {
		if one.Rule == "" && one.Name != "events_kept" && one.Name != "compact_after" || one.Doc == "" || one.Allowed == "" {
			t.Errorf("%s has no rule, no words or no bounds", one.Name)
		}
		if zero := set(); zero.Set(one.Name, "0") == nil && strings.Contains(one.Name, "age") &&
			!strings.HasPrefix(one.Allowed, "0s, or ") {
			t.Errorf("%s may be 0, and says it must be %s", one.Name, one.Allowed)
		}
	}
}

// What is stored and refused is shown shortly, kept as it was stored, and copied for each reader.
//
// proves REC-20
func TestRefusedSettingsAreKept(t *testing.T) {
	for raw, want := range map[string]string{
		`"0s"`:                              "0s",
		`"90s"`:                             "",
		`{"x": 1}`:                          `{"x": 1}`,
		`"` + strings.Repeat("é", 58) + `"`: `"` + strings.Repeat("é", 58) + `"`,
		`"` + strings.Repeat("é", 59) + `"`: `"` + strings.Repeat("é", 56) + "...",
		`"1000h"`:                           "1000h0m0s",
	} {
		var s store.ShardSettings
		if err := json.Unmarshal([]byte(`{"provider_poll": `+raw+`}`), &s); err != nil {
			t.Fatal(err)
		}
		if want == "" {
			if len(s.Refused) > 0 {
				t.Errorf("%s is refused: %v", raw, s.Refused)
			}
			continue
		}
		if len(s.Refused) != 1 || s.Refused[0].Value != want || s.Refused[0].Path != "provider_poll" ||
			s.Refused[0].Rule != "DET-12" || s.Refused[0].Allowed == "" {
			t.Errorf("%s: %+v, want the value %s", raw, s.Refused, want)
		}
	}
	var s store.ShardSettings
	if err := json.Unmarshal([]byte(`{"provider_poll": "0s", "orphan_grace": "-1s", "tomorrow": 7, "later": 8}`),
		&s); err != nil {
		t.Fatal(err)
	}
	before := string(store.Encode(s))
	changed := s
	if err := changed.Set("provider_poll", "3s"); err != nil || len(changed.Refused) != 1 ||
		changed.Refused[0].Path != "orphan_grace" {
		t.Errorf("%v, %+v", err, changed.Refused)
	}
	if after := string(store.Encode(s)); after != before || !strings.Contains(after, `"tomorrow":7`) ||
		!strings.Contains(after, `"later":8`) || len(s.Refused) != 2 {
		t.Errorf("a change of a copy changed it:\n%s\n%s", before, after)
	}
	last := store.DefaultShardSettings()
	_ = s.After(last)
	if after := string(store.Encode(s)); after != before {
		t.Errorf("After changed it:\n%s\n%s", before, after)
	}
	if err := json.Unmarshal([]byte(`[]`), &s); err == nil {
		t.Error("a list is read as settings")
	}
	if err := json.Unmarshal([]byte(`{"eligible_age": "2h", "forced_age": "1h"}`), &s); err != nil || len(s.Refused) != 2 {
		t.Fatal(err, s.Refused)
	}
	low, high := s.Refused[0], s.Refused[1]
	if low.Path != "eligible_age" || low.Value != "2h0m0s" || low.Rule == "" || !strings.Contains(low.Allowed,
		"at most forced_age (1h0m0s)") ||
		high.Path != "forced_age" || high.Value != "1h0m0s" || high.Rule == "" || !strings.Contains(high.Allowed,
		"at least eligible_age (2h0m0s)") {
		t.Errorf("%+v\n%+v", low, high)
	}
}
