package gateway_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/encryption"
	"github.com/leasehold/leasehold/coordinator/gateway"
	"github.com/leasehold/leasehold/store"
)

// files returns the last word on files since the last call, and how often there was one.
func (a *agent) files() (last *protocol.Files, number int) {
	a.t.Helper()
	synctest.Wait()
	for range len(a.in) {
		if m := (<-a.in).GetFiles(); m != nil {
			last, number = m, number+1
		}
	}
	return last, number
}

// fetch returns the content of a file.
func (a *agent) fetch(f *protocol.File) (content, problem string) {
	a.t.Helper()
	for len(content) < int(f.GetSize()) {
		a.send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_FetchFile{FetchFile: &protocol.FetchFile{
			Path: f.GetPath(), Version: f.GetVersion(), Offset: uint32(len(content)),
		}}})
		p := a.next().GetFilePiece()
		if p.GetProblem() != "" || len(p.GetData()) == 0 {
			return content, p.GetProblem()
		}
		if len(p.GetData()) > protocol.MaxPiece {
			a.t.Errorf("a piece has %d bytes", len(p.GetData()))
		}
		content += string(p.GetData())
	}
	return content, ""
}

func withFiles(list ...store.File) func(*store.Instance) {
	return func(i *store.Instance) { i.Spec.Files, i.Address, i.Zone = list, "192.0.2.1:80", "a" }
}

func newest(instance string) *protocol.Hello {
	return speaking(instance, 1, protocol.Newest, protocol.Oldest)
}

// An agent receives its files before the configuration that they belong to, and gets their contents
// in pieces. An agent of an earlier release receives none, and its reports confirm nothing.
//
// proves FILE-1, FILE-3
func TestAgentIsSentItsFiles(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		large := strings.Repeat("0123456789", 20_000)
		w.workloadRecord("web-0", withFiles(
			store.File{Path: "/a", Text: &large, Mode: "0640", Owner: "web", OnChange: store.FileChange{Do: store.FileReload}},
			store.File{Path: "/b", Template: "{{.Vars.greeting}} {{.Facts.instance}} {{.Facts.address}}", Mode: "0644"},
			store.File{Path: "/c", Template: "{{(index .Peers 7).Zone}}", Mode: "0644"},
		))
		a := r.welcomed(newest("web-0"))
		defer a.hangUp()
		told := a.next().GetFiles()
		if len(a.told) > 0 || told.GetConfigHash() != "c1" || len(told.GetFiles()) != 3 {
			t.Fatalf("told %v, after %v", told, a.told)
		}
		if f := told.GetFiles()[0]; f.GetMode() != 0o640 || f.GetOwner() != "web" || f.GetOnChange() != "reload" ||
			f.GetSize() != 200_000 {
			t.Errorf("told %v", f)
		}
		if got, problem := a.fetch(told.GetFiles()[0]); got != large {
			t.Errorf("%d bytes: %s", len(got), problem)
		}
		if got, problem := a.fetch(told.GetFiles()[1]); got != "hello web-0 192.0.2.1:80" {
			t.Errorf("%q: %s", got, problem)
		}
		if f := told.GetFiles()[2]; f.GetVersion() != "" || !strings.Contains(f.GetProblem(), "index out of range") {
			t.Errorf("told %v", f)
		}
		old := told.GetFiles()[1]
		w.workloadRecord("web-0", func(i *store.Instance) {
			withFiles(store.File{Path: "/b", Template: "{{.Vars.greeting}}", Mode: "0644"})(i)
			i.Config = "c2"
		})
		told, number := a.files()
		if number != 1 || told.GetConfigHash() != "c2" || len(told.GetFiles()) != 1 {
			t.Errorf("told %v, %d times", told, number)
		}
		if _, problem := a.fetch(old); problem != "it has another version by now" {
			t.Errorf("what is no longer wanted: %s", problem)
		}
		a.report(&protocol.Report{Healthy: true, ConfigHash: "c2", Files: []*protocol.FileState{{
			Path: "/b", State: "error",
			Why: "the disk is full",
		}}})
		if got := w.report("web-0").Record; got.Config != "c2" || len(got.Files) != 1 ||
			got.Files[0].Why != "the disk is full" {
			t.Errorf("stored %+v", got.Files)
		}

		w.workloadRecord("web-1", withFiles(store.File{Path: "/b", Template: "x", Mode: "0644"}))
		b := r.welcomed(speaking("web-1", 1, protocol.ManagedFiles-1, 1))
		defer b.hangUp()
		if _, number := b.files(); number > 0 {
			t.Error("an agent of an earlier release is told of files")
		}
		b.report(&protocol.Report{Healthy: true, ConfigHash: "c1"})
		if got := w.report("web-1").Record; got.Config != "" || len(got.Files) != 1 || !strings.Contains(got.Files[0].Why,
			"upgrade it") {
			t.Errorf("stored %q, %+v", got.Config, got.Files)
		}
	})
}

// proves SEC-6
func TestSecretsInFiles(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		ring := encryption.Ring{}.With(encryption.NewKey())
		r := w.serveWith("one", func(d *gateway.Deps) { d.Secrets = &keyring{ring: ring} })
		defer r.stop()
		w.workloadRecord("web-0", withFiles(store.File{Path: "/key", Secret: "db", Mode: "0600"}))
		r.own = w.ca.agent("web-0", time.Hour)
		a := r.welcomed(newest("web-0"))
		defer a.hangUp()
		if told, _ := a.files(); !strings.Contains(told.GetFiles()[0].GetProblem(),
			"there is no such secret: leasehold secret set db") {
			t.Errorf("told %v", told)
		}
		for version, value := range []string{"first value", "second value"} {
			w.secret(ring, shardID, "db", value, version+1)
			told, number := a.files()
			if number != 1 || !told.GetFiles()[0].GetSecret() || strings.Contains(fmt.Sprint(told), "value") {
				t.Fatalf("told %v, %d times", told, number)
			}
			if got, problem := a.fetch(told.GetFiles()[0]); got != value {
				t.Errorf("%q: %s", got, problem)
			}
		}
	})
}

// Nothing that happens to a peer without evidence against it removes it from a file. Evidence does,
// at most once in the settle time.
//
// proves FILE-1, SAFE-18
func TestPeersInFiles(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		settle := 5 * time.Second
		peers := store.File{
			Path: "/peers", Mode: "0644", Template: "{{range .Peers}}{{.Instance}} {{end}}",
			Settle: store.Duration(settle),
		}
		peer := func(id string, change func(*store.Instance)) {
			w.workloadRecord(id, func(i *store.Instance) {
				i.Address = "192.0.2.9:80"
				if change != nil {
					change(i)
				}
			})
		}
		w.workloadRecord("web-0", withFiles(peers))
		for _, id := range []string{"web-1", "web-2", "web-3", "web-4", "web-5"} {
			peer(id, nil)
		}
		a := r.welcomed(newest("web-0"))
		defer a.hangUp()
		told, _ := a.files()
		content := func() string {
			got, problem := a.fetch(told.GetFiles()[0])
			if problem != "" {
				t.Error(problem)
			}
			return got
		}
		all := "web-0 web-1 web-2 web-3 web-4 web-5 "
		if got := content(); got != all {
			t.Fatalf("the file is %q", got)
		}
		shard := func(hold *store.Hold) {
			w.put(w.keys.Shard(), store.Encode(store.Shard{
				Schema: store.Schema, ID: shardID, Settings: store.DefaultShardSettings(), Hold: hold,
			}))
		}
		nothing := map[string]func(){
			"the agent is lost": func() { w.put(w.keys.Alive("web-1"), []byte("{}")); w.remove(w.keys.Alive("web-1")) },
			"the shard is held": func() { shard(&store.Hold{By: "x", Why: "y"}) },
			"records are lost": func() {
				shard(&store.Hold{By: "x", Why: "y", Damage: 2})
				w.remove(w.keys.Instance("web-2"))
			},
			"a record is unreadable": func() { w.put(w.keys.Instance("web-3"), []byte("garbage")) },
			"its report is not there": func() {
				w.put(w.keys.Report("web-4"), []byte("garbage"))
				w.remove(w.keys.Report("web-4"))
			},
		}
		for _, what := range slices.Sorted(maps.Keys(nothing)) {
			nothing[what]()
			pass(2 * settle)
			if told, number := a.files(); number > 0 {
				t.Errorf("%s: told %v", what, told)
			}
		}
		shard(nil)
		pass(2 * settle)
		a.files()

		evidence := []struct {
			what string
			do   func()
			want string
		}{
			{"a report", func() {
				w.put(w.keys.Report("web-1"), store.Encode(store.Report{Schema: store.Schema, Instance: "web-1"}))
			}, "web-0 web-2 web-3 web-4 web-5 "},
			{
				"a drain", func() { peer("web-4", func(i *store.Instance) { i.Phase = store.Draining }) },
				"web-0 web-2 web-3 web-5 ",
			},
			{"a deletion on purpose", func() { w.gone("web-5") }, "web-0 web-2 web-3 "},
			{"a record that is forgotten on purpose", func() { w.noted("web-2", 1) }, "web-0 web-3 "},
			{"a new one", func() { peer("web-9", nil) }, "web-0 web-3 web-9 "},
		}
		for _, e := range evidence {
			e.do()
			pass(settle)
			var number int
			if told, number = a.files(); number != 1 {
				t.Fatalf("%s: told %d times: %v", e.what, number, told)
			}
			if got := content(); got != e.want {
				t.Errorf("%s: the file is %q, want %q", e.what, got, e.want)
			}
		}
		changes := 0
		for began := time.Now(); time.Since(began) < 10*settle; changes++ {
			id := fmt.Sprintf("web-%d", 10+changes)
			peer(id, nil)
			pass(100 * time.Millisecond)
		}
		if _, number := a.files(); number < 9 || number > 11 {
			t.Errorf("%d changes in ten times the settle time were told %d times", changes, number)
		}
	})
}

// A replica that starts after a record was lost does not write a file without that peer. It does
// once the record is back; and an operator who accepts a loss takes the peer out.
//
// proves FILE-1, SAFE-18
func TestPeersThatANewReplicaHasNeverRead(t *testing.T) {
	inWorld(t, func(w *world) {
		settle := 5 * time.Second
		peers := store.File{
			Path: "/peers", Mode: "0644", Template: "{{range .Peers}}{{.Instance}} {{end}}",
			Settle: store.Duration(settle),
		}
		peer := func(id string) { w.workloadRecord(id, func(i *store.Instance) { i.Address = "192.0.2.9:80" }) }
		w.workloadRecord("web-0", withFiles(peers))
		two := 2
		w.put(w.keys.Status("web"), store.Encode(store.Status{
			Schema: store.Schema, Group: "web", Records: &two, Damaged: []store.Damaged{{
				Key: w.keys.Instance("web-2"), Instance: "web-2", What: store.DamageLost, Last: 1, Seen: 1,
			}},
		}))
		r := w.serve("one")
		defer r.stop()
		a := r.welcomed(newest("web-0"))
		defer a.hangUp()
		told, _ := a.files()
		if f := told.GetFiles()[0]; f.GetVersion() != "" || !strings.Contains(f.GetProblem(), "peers are not known") {
			t.Fatalf("without a peer of which it knows nothing: told %v", f)
		}
		next := func(what, want string) {
			t.Helper()
			pass(2 * settle)
			told, number := a.files()
			if number == 0 {
				t.Fatalf("%s: told nothing", what)
			}
			if got, problem := a.fetch(told.GetFiles()[0]); got != want {
				t.Errorf("%s: the file is %q (%s), want %q", what, got, problem, want)
			}
		}
		peer("web-2")
		next("its record is back", "web-0 web-2 ")
		w.remove(w.keys.Instance("web-2"))
		pass(2 * settle)
		if told, number := a.files(); number > 0 {
			t.Errorf("its record is lost again: told %v", told)
		}
		w.put(w.keys.Shard(), store.Encode(store.Shard{
			Schema: store.Schema, ID: shardID, Settings: store.DefaultShardSettings(), Reviewed: &store.Reviewed{Seen: 1 << 40},
		}))
		next("the loss is accepted", "web-0 ")
	})
}
