package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A list shows first that an instance is unhealthy, before anything else, and shows no older
// decision that it was healthy.
func TestAListShowsIllHealthFirst(t *testing.T) {
	open := &store.Alive{Instance: "web-0-x", BootID: "b", State: store.StreamOpen}
	lost := &store.Alive{Instance: "web-0-x", BootID: "b", State: store.StreamLost, Why: "the connection broke"}
	good := &store.Report{Schema: 1, Instance: "web-0-x", BootID: "b", Healthy: true}
	bad := &store.Report{Schema: 1, Instance: "web-0-x", BootID: "b", Why: "process: exited with 1"}
	older := &store.Report{Schema: 1, Instance: "web-0-x", BootID: "a", Why: "process: exited with 1"}
	for _, tt := range []struct {
		name   string
		phase  store.Phase
		alive  *store.Alive
		report *store.Report
		want   []string // health, now, last
	}{
		{"well", store.Running, open, good, []string{"healthy", "-", "DET-9 its checks pass"}},
		{
			"its workload is dead", store.Running, open, bad,
			[]string{"UNHEALTHY", "process: exited with 1", "DET-9 process: exited with 1"},
		},
		{"its report is of another boot", store.Running, open, older, []string{"-", "-", "DET-9 its checks pass"}},
		{
			"its stream is lost", store.Running, lost, good,
			[]string{"SUSPECT", "-", "DET-6 its stream is lost: the connection broke"},
		},
		{"no session", store.Running, nil, good, []string{"SILENT", "-", "DET-7 its agent has no session"}},
		{"on its way up", store.Checking, open, bad, []string{"-", "-", "DET-9 its checks pass"}},
		{
			"draining", store.Draining, open, bad,
			[]string{"UNHEALTHY", "process: exited with 1", "DET-9 process: exited with 1"},
		},
		{"no report yet", store.Running, open, nil, []string{"-", "-", "DET-9 its checks pass"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			i := instanceOf(webGroup(1), 0, "web-0-x", tt.phase)
			i.Last = store.Decision{Rule: "DET-9", What: "healthy", Why: "its checks pass", At: noon.Add(-time.Hour)}
			w.put(store.KindInstances, "web-0-x", i)
			if tt.alive != nil {
				w.put(store.KindAlive, "web-0-x", *tt.alive)
			}
			if tt.report != nil {
				w.put(store.KindReports, "web-0-x", *tt.report)
			}
			_, out, _ := w.run("instance", "list", "-o", "wide")
			head, row, _ := strings.Cut(out, "\n")
			cells := map[string]string{}
			for n, title := range strings.Split(head, "\t") {
				cells[title] = strings.Split(strings.TrimSpace(row), "\t")[n]
			}
			if got := []string{cells["HEALTH"], cells["NOW"], cells["LAST"]}; strings.Join(got,
				"|") != strings.Join(tt.want, "|") {
				t.Errorf("got %q, want %q in\n%s", got, tt.want, out)
			}
		})
	}
}

// A report that cannot be read hides no instance.
func TestAListWithAReportThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.put(store.KindInstances, "web-0-x", instanceOf(webGroup(1), 0, "web-0-x", store.Running))
	w.put(store.KindAlive, "web-0-x", store.Alive{Schema: 1, Instance: "web-0-x", State: store.StreamOpen})
	w.put(store.KindReports, "web-0-x", "garbage")
	if code, out, stderr := w.run("instance", "list"); code != Done ||
		!strings.Contains(out, "web-0-x\t-\t0\trunning") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
}

// An instance on demand whose record cannot be read is listed with its group, as its ID names it.
//
// proves SAFE-16
func TestAListWithARecordOnDemandThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.put(store.KindGroups, "web", webGroup(1))
	w.put(store.KindInstances, "web-x-bcdfgh", "garbage")
	if code, out, stderr := w.run("instance", "list", "-g", "web"); code != Done ||
		!strings.Contains(out, "web-x-bcdfgh\t-\t-\tunreadable") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
}

// Instances of a group whose name begins with another's name do not count as the other's: web-1-0-b
// is of web-1, and web-x-0-b of web-x.
//
// proves FILE-1
func TestFilesOfAGroupWithALongerName(t *testing.T) {
	w := newWorld(t)
	w.serve()
	for name, id := range map[string]string{"web": "web-0-b", "web-1": "web-1-0-b", "web-x": "web-x-0-b"} {
		g := webGroup(1)
		g.Name, g.Files = name, []store.File{{Path: "/opt/a", Text: new("a")}}
		g.Complete()
		w.put(store.KindStatus, name, statusOf(g, w.put(store.KindGroups, name, g), 1))
		w.put(store.KindInstances, id, instanceOf(g, 0, id, store.Running))
		w.put(store.KindReports, id, store.Report{
			Schema: store.Schema, Instance: id, Files: []store.FileReport{{Path: "/opt/a", State: store.FileMissing}},
		})
	}
	_, out, errs := w.run("status")
	for _, at := range []string{", at web-0-b\n", ", at web-1-0-b\n", ", at web-x-0-b\n"} {
		if strings.Count(out, at) != 1 {
			t.Errorf("it does not say %q once:\n%s%s", at, out, errs)
		}
	}
}
