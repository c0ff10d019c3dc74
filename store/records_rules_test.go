package store_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

func names(timers []store.NamedTimer) string {
	var out []string
	for _, t := range timers {
		out = append(out, fmt.Sprintf("%s %s", t.Name, t.Timer.For))
	}
	return fmt.Sprint(out)
}

// Every timer of a record is listed with its name, so that a leader runs it on its own clock.
//
// proves SAFE-13
func TestTimersOfRecords(t *testing.T) {
	timer := func(s int) *store.Timer { return &store.Timer{For: store.Duration(time.Duration(s) * time.Second)} }
	for _, test := range []struct {
		record interface{ Timers() []store.NamedTimer }
		want   string
	}{
		{&store.Slot{}, "[]"},
		{&store.Slot{Retry: timer(1)}, "[retry 1s]"},
		{&store.Slot{GiveUp: timer(2)}, "[give_up 2s]"},
		{&store.Slot{Retry: timer(1), GiveUp: timer(2)}, "[retry 1s give_up 2s]"},
		{&store.Instance{}, "[]"},
		{&store.Instance{Drain: &store.Drain{Timer: *timer(1)}}, "[drain 1s]"},
		{&store.Instance{Doomed: &store.Doom{}}, "[]"},
		{
			&store.Instance{Drain: &store.Drain{Timer: *timer(1)}, Doomed: &store.Doom{Deadline: timer(2)}},
			"[drain 1s doomed 2s]",
		},
		{&store.Status{}, "[]"},
		{&store.Status{Storm: &store.Storm{}, Rollout: &store.Rollout{}}, "[]"},
		{
			&store.Status{Storm: &store.Storm{Calm: timer(1), NextProbe: timer(2), Resume: timer(3)}},
			"[storm_calm 1s storm_probe 2s storm_resume 3s]",
		},
		{&store.Status{Rollout: &store.Rollout{Stalls: timer(4)}}, "[rollout_stalls 4s]"},
	} {
		if got := names(test.record.Timers()); got != test.want {
			t.Errorf("%T: %s, want %s", test.record, got, test.want)
		}
	}
}

func TestPlaceOfAnInstance(t *testing.T) {
	for _, slot := range []int{0, 3} {
		if p := (&store.Instance{Slot: slot}).Place(); p == nil || *p != slot {
			t.Errorf("the place of slot %d is %v", slot, p)
		}
	}
	if p := (&store.Instance{Slot: -1}).Place(); p != nil {
		t.Errorf("an instance on demand has the place %d", *p)
	}
}

// proves HEAL-1
func TestRestartsThatTheAgentIsSent(t *testing.T) {
	for r, want := range map[store.Restart]bool{
		{Level: store.RestartWorkload}:              true,
		{Level: store.RestartMachine}:               false,
		{Level: store.RestartMachine, Renews: true}: true,
	} {
		if r.ByAgent() != want {
			t.Errorf("%+v is told to the agent: %t", r, !want)
		}
	}
}

// proves DET-6
func TestTroubledStreams(t *testing.T) {
	for state, want := range map[store.StreamState]bool{
		store.StreamOpen: false, store.StreamOverdue: true, store.StreamLost: true, store.StreamLeft: true,
		store.StreamMoved: false,
	} {
		if state.Troubled() != want {
			t.Errorf("a stream that is %s is in trouble: %t", state, !want)
		}
	}
}

// Two reports tell of the same thing if nothing in them differs that matters, and of different
// things if anything does.
func TestSameNoticesAndCertificates(t *testing.T) {
	at := time.Unix(100, 0)
	notice := store.Notice{Kind: "k", Why: "w", At: at, In: 5}
	for name, test := range map[string]struct {
		other *store.Notice
		want  bool
	}{
		"none":                 {nil, false},
		"itself":               {&notice, true},
		"in another time zone": {&store.Notice{Kind: "k", Why: "w", At: at.UTC(), In: 5}, true},
		"less is left":         {&store.Notice{Kind: "k", Why: "w", At: at, In: 4}, true},
		"another kind":         {&store.Notice{Kind: "l", Why: "w", At: at}, false},
		"another reason":       {&store.Notice{Kind: "k", Why: "x", At: at}, false},
		"another time":         {&store.Notice{Kind: "k", Why: "w", At: at.Add(1)}, false},
	} {
		if notice.Same(test.other) != test.want || test.other.Same(&notice) != test.want {
			t.Errorf("notices, %s: want %t", name, test.want)
		}
	}
	certificate := store.CertificateReport{Issuer: "i", Ends: at}
	for name, test := range map[string]struct {
		other *store.CertificateReport
		want  bool
	}{
		"none":                 {nil, false},
		"itself":               {&certificate, true},
		"in another time zone": {&store.CertificateReport{Issuer: "i", Ends: at.UTC()}, true},
		"another issuer":       {&store.CertificateReport{Issuer: "j", Ends: at}, false},
		"another end":          {&store.CertificateReport{Issuer: "i", Ends: at.Add(1)}, false},
	} {
		if certificate.Same(test.other) != test.want || test.other.Same(&certificate) != test.want {
			t.Errorf("certificates, %s: want %t", name, test.want)
		}
	}
	var noNotice *store.Notice
	var noCertificate *store.CertificateReport
	if !noNotice.Same(nil) || !noCertificate.Same(nil) {
		t.Error("none and none are not the same")
	}
}

func TestProgressOfACheck(t *testing.T) {
	for _, test := range []struct {
		check store.CheckReport
		want  string
	}{
		{store.CheckReport{Healthy: true, Against: 0, Threshold: 2}, ""},
		{store.CheckReport{Healthy: true, Against: 1, Threshold: 2}, "1/2"},
		{store.CheckReport{Healthy: false, Against: 0, Threshold: 2}, "0/2"},
		{store.CheckReport{Healthy: false, Against: 1, Threshold: 3}, "1/3"},
		{store.CheckReport{Healthy: false, Against: 1, Threshold: 0}, ""},
	} {
		if got := test.check.Progress(); got != test.want {
			t.Errorf("%+v: %q, want %q", test.check, got, test.want)
		}
	}
}

// Releasing a hold remembers what the operator had seen: so many machines without a record, if that
// was the reason.
//
// proves SAFE-12
func TestReleaseOfAHold(t *testing.T) {
	at := time.Unix(100, 0)
	for _, test := range []struct {
		hold *store.Hold
		want *store.Reviewed
	}{
		{nil, nil},
		{&store.Hold{}, nil},
		{&store.Hold{Extras: 1}, &store.Reviewed{Extras: 1, At: at}},
		{&store.Hold{Extras: 3}, &store.Reviewed{Extras: 3, At: at}},
	} {
		s := store.Shard{Hold: test.hold}
		s.Release(at)
		if s.Hold != nil || !reflect.DeepEqual(s.Reviewed, test.want) {
			t.Errorf("%+v: afterwards it is held by %+v, reviewed %+v, want %+v", test.hold, s.Hold, s.Reviewed,
				test.want)
		}
	}
	before := &store.Reviewed{Extras: 5}
	s := store.Shard{Hold: &store.Hold{}, Reviewed: before}
	if s.Release(at); s.Reviewed != before {
		t.Errorf("a hold for another reason changed what was reviewed to %+v", s.Reviewed)
	}
}

// proves DET-12, DET-14, REC-3, REC-8
func TestShardSettings(t *testing.T) {
	hour := store.Duration(time.Hour)
	defaults := store.ShardSettings{
		ProviderPoll: store.Duration(5 * time.Second), CreateRate: 10, CreateBurst: 10,
		OrphanGrace:  store.Duration(10 * time.Minute),
		ReconnectMin: store.Duration(time.Second), ReconnectMax: store.Duration(30 * time.Second),
		EventsKept: store.Duration(168 * time.Hour), DaysKept: store.Duration(90 * 24 * time.Hour),
		Certificate: store.Duration(720 * time.Hour), CompactAfter: &hour,
	}
	if got := (store.ShardSettings{}).WithDefaults(); !reflect.DeepEqual(got, defaults) {
		t.Errorf("without any setting: %+v", got)
	}
	least := store.Duration(time.Minute)
	own := store.ShardSettings{
		ProviderPoll: 2, CreateRate: 0.5, CreateBurst: 2, OrphanGrace: 2, ReconnectMin: 2,
		ReconnectMax: 2, EventsKept: 2, DaysKept: 2, EligibleAge: 2, ForcedAge: 2, Certificate: 2,
		CompactAfter: &least,
	}
	if got := own.WithDefaults(); !reflect.DeepEqual(got, own) {
		t.Errorf("settings of its own: %+v", got)
	}
}

// Another cluster, or an older revision, is another past.
//
// proves SAFE-12
func TestExchangedStores(t *testing.T) {
	for _, test := range []struct {
		served store.Served
		want   bool
	}{
		{store.Served{}, false},
		{store.Served{Cluster: "a", Revision: 5}, false},
		{store.Served{Cluster: "b", Revision: 5}, true},
		{store.Served{Revision: 5}, false},
		{store.Served{Cluster: "a", Revision: 10}, false},
		{store.Served{Cluster: "a", Revision: 11}, true},
		{store.Served{Revision: 11}, true},
	} {
		if got := test.served.Exchanged(store.Vitals{Cluster: 0xa, Revision: 10}); (got != "") != test.want {
			t.Errorf("%+v: %q", test.served, got)
		}
	}
}

// proves SAFE-13
func TestGapsWithin(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	gap := store.Gap{From: at(10), To: at(20)}
	for since, want := range map[int64]time.Duration{
		0: 10 * time.Second, 10: 10 * time.Second, 15: 5 * time.Second,
		20: 0, 25: 0,
	} {
		if got := gap.Within(at(since)); got != want {
			t.Errorf("since %d: %s, want %s", since, got, want)
		}
	}
}

// proves SAFE-9
func TestLeaseLostValues(t *testing.T) {
	run := func(args ...string) store.LeaseLost { return store.LeaseLost{Do: store.LeaseLostRun, Run: args} }
	for _, test := range []struct {
		value  store.LeaseLost
		ok     bool
		fences bool
		text   string
	}{
		{store.LeaseLost{}, true, false, `"none"`},
		{store.LeaseLost{Do: store.LeaseLostStop}, true, true, `"stop"`},
		{store.LeaseLost{Do: store.LeaseLostPowerOff}, true, true, `"poweroff"`},
		{run("/bin/true", "x"), true, true, `{"run":["/bin/true","x"]}`},
		{run("/bin/true"), true, true, `{"run":["/bin/true"]}`},
		{run(), false, true, ""},
		{run(""), false, true, ""},
		{store.LeaseLost{Do: "reboot"}, false, true, ""},
		{store.LeaseLost{Do: store.LeaseLostStop, Run: []string{"x"}}, false, true, ""},
		{store.LeaseLost{Run: []string{"x"}}, false, false, ""},
	} {
		g := store.DefaultGroup()
		g.Name, g.Provider, g.Report.OnLeaseLost = "web", "process", test.value
		g.Complete()
		if err := g.Validate(); (err == nil) != test.ok {
			t.Errorf("%+v: %v", test.value, err)
		}
		if test.value.Fences() != test.fences {
			t.Errorf("%+v fences: %t", test.value, !test.fences)
		}
		if !test.ok {
			continue
		}
		if got := test.value.String(); got != test.text {
			t.Errorf("%+v is written as %s, want %s", test.value, got, test.text)
		}
		var read store.LeaseLost
		if err := read.UnmarshalJSON([]byte(" " + test.text)); err != nil || !reflect.DeepEqual(read, test.value) {
			t.Errorf("%s is read as %+v, %v", test.text, read, err)
		}
	}
	for _, bad := range []string{`5`, `["stop"]`, `{"run":"x"}`, `{"do":"stop"}`} {
		var read store.LeaseLost
		if err := read.UnmarshalJSON([]byte(bad)); err == nil {
			t.Errorf("%s is read as %+v", bad, read)
		}
	}
	was := run("x")
	if err := was.UnmarshalJSON([]byte(`"stop"`)); err != nil || was.Run != nil {
		t.Errorf("what was there before is kept: %+v, %v", was, err)
	}
}

// What was set beside a static group and has vanished stays in force; an override that is there, or
// a deletion, ends that.
//
// proves SAFE-10
func TestWhatWasSetBesideAStaticGroup(t *testing.T) {
	beside := &store.Beside{Revision: 7}
	accepted := &store.Group{}
	for _, test := range []struct {
		name    string
		status  store.Status
		static  store.Group
		dynamic store.Revision
		want    bool
	}{
		{"vanished", store.Status{Accepted: accepted, Beside: beside}, store.Group{}, 0, true},
		{"there", store.Status{Accepted: accepted, Beside: beside}, store.Group{}, 9, false},
		{"nothing was ever accepted", store.Status{Beside: beside}, store.Group{}, 0, false},
		{"nothing was beside it", store.Status{Accepted: accepted}, store.Group{}, 0, false},
		{
			"is being deleted",
			store.Status{Accepted: accepted, Beside: beside},
			store.Group{OperatorState: store.OperatorState{Deleting: true}},
			0, false,
		},
	} {
		if got := test.status.LostBeside(test.static, test.dynamic); (got != nil) != test.want {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
}

// proves REC-6
func TestSpecInForce(t *testing.T) {
	static := []byte(`{"schema":1,"name":"web","provider":"process","size":2}`)
	for _, test := range []struct {
		name            string
		static, dynamic []byte
		size            int // -1: refused
	}{
		{"static alone", static, nil, 2},
		{"with an override", static, []byte(`{"schema":1,"name":"web","size":5}`), 5},
		{"with an override of nothing", static, []byte(`{"schema":1,"name":"web"}`), 2},
		{"dynamic alone", nil, []byte(`{"schema":1,"name":"web","provider":"process","size":3}`), 3},
		{"nothing at all", nil, nil, -1},
		{"override of another group", static, []byte(`{"schema":1,"name":"db"}`), -1},
		{"override that is no record", static, []byte(`{`), -1},
		{"override of a newer schema", static, []byte(`{"schema":2,"name":"web"}`), -1},
		{"override that makes the group wrong", static, []byte(`{"schema":1,"name":"web","size":-1}`), -1},
		{
			"static that is wrong", []byte(`{"schema":1,"name":"web","provider":"process","size":-1}`),
			[]byte(`{"schema":1,"name":"web","size":1}`), -1,
		},
	} {
		g, err := store.ReadInForce(test.static, test.dynamic)
		if (err != nil) != (test.size < 0) || err == nil && g.Size != test.size {
			t.Errorf("%s: size %d, %v, want %d", test.name, g.Size, err, test.size)
		}
	}
}

// Everything in a spec that a machine is made from reaches its instance: nothing is left out, and
// nothing is exchanged.
//
// proves ROLL-1, ROLL-2
func TestInstanceSpecHasAllOfTheGroup(t *testing.T) {
	g := store.DefaultGroup()
	group := reflect.ValueOf(&g).Elem()
	spec := reflect.TypeFor[store.InstanceSpec]()
	for i := range spec.NumField() {
		if f := group.FieldByName(spec.Field(i).Name); f.IsValid() {
			distinguish(f, i+1)
		}
	}
	g.Spot = store.SpotSpec{Enabled: true, NoticeSpec: store.NoticeSpec{Source: store.NoticeFile, File: "/notice"}}
	made := g.InstanceSpec()
	for i := range spec.NumField() {
		name, got := spec.Field(i).Name, reflect.ValueOf(made).Field(i)
		want := group.FieldByName(name)
		switch name {
		case "Notices":
			want = reflect.ValueOf(g.Spot.NoticeSpec)
		case "Busy":
			want = reflect.ValueOf(g.Busy.BusyProbe)
		case "Spot":
			want = reflect.ValueOf(g.Spot.Enabled)
		}
		if got.IsZero() || !reflect.DeepEqual(got.Interface(), want.Interface()) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	g.Spot.Source = store.NoticeNone
	if got := g.InstanceSpec().Notices; got != (store.NoticeSpec{}) {
		t.Errorf("without a source the agent is told to look at %+v", got)
	}
}

// distinguish makes a value differ from others.
func distinguish(v reflect.Value, n int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text", n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Struct:
		for i := range v.NumField() {
			distinguish(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		distinguish(v.Index(0), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(fmt.Sprint("key", n)), reflect.ValueOf(fmt.Sprint("value", n)))
	default: // no field of the others' kinds is a part of a template
	}
}

// A change of what a machine is made from changes the template's hash, a change of what its agent
// can be sent changes the configuration's too, and a change of a timer changes neither.
//
// proves ROLL-1, ROLL-2, ROLL-3
func TestHashesFollowTheirFields(t *testing.T) {
	var none store.InstanceSpec
	template := []string{"Provider", "Template", "Workload", "Vars", "Secrets", "Checks", "Slots", "Files", "Busy"}
	config := []string{"Workload", "Vars", "Secrets", "Checks", "Files", "Busy"}
	kind := reflect.TypeFor[store.InstanceSpec]()
	for i := range kind.NumField() {
		var s store.InstanceSpec
		distinguish(reflect.ValueOf(&s).Elem().Field(i), 1)
		name := kind.Field(i).Name
		if got, want := s.TemplateHash() != none.TemplateHash(), slices.Contains(template, name); got != want {
			t.Errorf("%s changes the hash of the template: %t", name, got)
		}
		if got, want := s.ConfigHash() != none.ConfigHash(), slices.Contains(config, name); got != want {
			t.Errorf("%s changes the hash of the configuration: %t", name, got)
		}
	}
}

// A source of notices is watched if it is named, and "none" names none.
func TestWatchedSources(t *testing.T) {
	for source, want := range map[string]bool{
		"": false, store.NoticeNone: false, store.NoticeFile: true,
		store.NoticeAWS: true,
	} {
		if (store.NoticeSpec{Source: source}).Watched() != want {
			t.Errorf("%q is watched: %t", source, !want)
		}
	}
}

// A token is told once and never the same; what is stored of it is its SHA-256.
//
// proves SEC-2
func TestTokens(t *testing.T) {
	a, b := store.NewToken(), store.NewToken()
	if a == b || len(a) != 52 || len(b) != 52 {
		t.Errorf("tokens are %q and %q", a, b)
	}
	if got := store.TokenHash("abc"); got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("the hash of abc is %s", got)
	}
}
