package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

var update = flag.Bool("update", false, "write what the commands print into testdata")

// The worlds that the transcripts in testdata begin in.
var beginnings = map[string]func(*world){
	"empty": func(*world) {},
	"served": func(w *world) {
		w.serve()
		web, api := webGroup(3), webGroup(4)
		api.Name, api.Labels = "api", map[string]string{"team": "shop"}
		w.put(store.KindStatus, "web", statusOf(web, w.put(store.KindGroups, "web", web), 3))
		st := statusOf(api, w.put(store.KindGroups, "api", api), 2)
		st.Phases[store.Creating] = 1
		st.Verdicts[store.Lost] = 1
		st.Blocked = []store.Blocked{{
			Rule: "HEAL-2", What: "replace api-3-d1", Why: "1 of 1 extra instances is in use",
			Until: "api-1-z1 is running", Instance: "api-3-d1",
		}}
		w.put(store.KindStatus, "api", st)
		for slot, id := range []string{"web-0-a1", "web-1-b1", "web-2-c1"} {
			w.put(store.KindInstances, id, instanceOf(web, slot, id, store.Running))
			w.put(store.KindAlive, id, store.Alive{
				Schema: 1, Instance: id, Replica: "coord-a", Lease: "00aa", Epoch: 2,
				State: store.StreamOpen, Since: noon.Add(-time.Minute), Agent: "v0",
			})
		}
		creating := instanceOf(api, 1, "api-1-z1", store.Creating)
		creating.Replaces = "api-1-a1"
		w.put(store.KindInstances, "api-1-z1", creating)
		w.put(store.KindReports, "web-0-a1", store.Report{
			Schema: 1, Instance: "web-0-a1", Received: noon.Add(-20 * time.Second), Healthy: false,
			Why: "process is gone", Uptime: store.Duration(time.Hour),
			Checks: []store.CheckReport{{Name: "process", Why: "exited", Since: noon.Add(-21 * time.Second)}},
			Host: store.HostReport{
				CPUPercent: 3, MemoryPercent: 41, DiskPercent: 9, NetworkSent: 1 << 40,
				NetworkRecv: 1 << 41, Windows: []store.HostWindow{
					{
						Span: store.Duration(time.Minute), Covered: store.Duration(time.Minute), CPUPercent: 12.4,
						MemoryPercent: 40.6, DiskPercent: 9, NetworkSent: 1000, NetworkRecv: 5 << 20,
					},
					{
						Span: store.Duration(5 * time.Minute), Covered: store.Duration(200 * time.Second), CPUPercent: 55,
						MemoryPercent: 38, DiskPercent: 8, NetworkSent: 3 << 10, NetworkRecv: 12 << 20,
					},
				},
			},
			Workload: &store.WorkloadExit{Code: 1, At: noon.Add(-21 * time.Second), Output: "panic:\n\x1b[2Jno\n"},
		})
		w.journal(48*time.Hour, store.JournalEntry{
			Rule: "REC-3", Group: "web", Instance: "web-0-old", What: "long ago",
			Revision: 1,
		})
		w.journal(time.Hour, store.JournalEntry{
			Rule: "REC-3", Group: "web", Instance: "web-0-a1",
			What: "create instance in slot 0", Why: "slot was empty", Revision: 7, Evidence: []string{"slot 0 empty"},
		})
		w.journal(3*time.Minute, store.JournalEntry{
			Rule: "DET-17", Group: "api", Instance: "api-3-d1", What: "lost",
			Why: "lease ended", Revision: 9,
		})
	},
	"busy":  busy,
	"roots": withRoots,
	// A group whose first spec the leader refuses, and one with a newer spec that it refuses.
	"refused": func(w *world) {
		w.serve()
		zones := webGroup(2)
		zones.Name, zones.Template.Zones, zones.Workload.Run = "zones", []string{"mars", "venus"}, nil
		why := `invalid template: zone "mars": the process provider has local; invalid template: zone "venus": the process provider has local`
		rev := w.put(store.KindGroups, "zones", zones)
		w.put(store.KindStatus, "zones",
			store.Status{
				Schema: 1, Group: "zones", State: store.GroupRefused, Since: noon,
				Invalid: &store.InvalidSpec{Revision: rev, Why: why},
			})
		st := statusOf(webGroup(3), w.put(store.KindGroups, "web", webGroup(3)), 3)
		bad := webGroup(4)
		bad.Template.InstanceType = "large"
		rev = w.put(store.KindGroups, "web", bad)
		st.Invalid = &store.InvalidSpec{
			Revision: rev,
			Why:      `invalid template: instance_type "large": a process on this host has no type: remove it`,
		}
		w.put(store.KindStatus, "web", st)
		for slot, id := range []string{"web-0-a1", "web-1-b1", "web-2-c1"} {
			w.put(store.KindInstances, id, instanceOf(webGroup(3), slot, id, store.Running))
			w.put(store.KindAlive, id, store.Alive{
				Schema: 1, Instance: id, Replica: "coord-a", State: store.StreamOpen,
				Since: noon.Add(-time.Minute), Agent: "v0",
			})
		}
	},
	// A shard whose record was edited by hand, with invalid values.
	"settings": func(w *world) {
		w.serve()
		w.put(store.KindShard, "",
			`{"schema":1,"id":"x1","name":"default","settings":{"provider_poll":"0s","create_rate":20,"create_burst":"many","orphan_grace":"1h","tomorrow":{"a":1}}}`)
	},
	"trouble": func(w *world) {
		hold := store.Shard{
			Schema: 1, ID: "x1", Name: "default",
			Hold: &store.Hold{By: "coord-a", Why: "4 extra machines", At: noon.Add(-time.Minute)},
		}
		w.put(store.KindShard, "", hold)
		w.put(store.KindServed, "", store.Served{Schema: 1, At: noon.Add(-3 * time.Minute), Replica: "coord-a"})
		w.put(store.KindReplicas, "coord-a",
			store.Replica{
				Schema: 1, ID: "coord-a", Unnoted: 37, Disturbances: 2,
				Last: &store.Disturbance{At: noon.Add(-30 * time.Second), What: "leader changed"},
			})
		w.put(store.KindGroups, "new", strings.ReplaceAll(string(store.Encode(webGroup(1))), `"web"`, `"new"`))
		w.put(store.KindGroups, "broken", `{"schema":1,"name":"broken","provider":"process","size":-1}`)
		web := webGroup(3)
		st := statusOf(web, 5, 3)
		st.Invalid = &store.InvalidSpec{Why: "missing"}
		w.put(store.KindStatus, "web", st)
		w.put(store.KindStrays, "web-9-x",
			store.Stray{
				Schema: 1, Instance: "web-9-x", Replica: "coord-a", From: "10.0.0.9:5",
				At: noon.Add(-time.Second),
			})
	},
}

func mistaken(w *world) {
	w.put(store.KindShard, "", store.Shard{
		Schema: 1, ID: "0bad", Name: "default", Created: noon, Generation: 1,
		Settings: store.DefaultShardSettings(),
	})
	w.put(store.KindServed, "", store.Served{Schema: 1, At: noon, Replica: "coord-c"})
}

var lossBeginnings = map[string]func(*world){
	"lost everything": func(w *world) {
		all, err := w.st.List(w.t.Context(), w.keys.Prefix(), 0)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, kv := range all.KVs {
			if _, err := w.st.Commit(w.t.Context(), store.Txn{Writes: []store.Write{store.Delete(kv.Key)}}); err != nil {
				w.t.Fatal(err)
			}
		}
	},
	"no backup for days": func(w *world) {
		w.serve()
		w.put(store.KindShard, "", store.Shard{
			Schema: 1, ID: "x1", Name: "default", Created: noon.Add(-30 * 24 * time.Hour),
			Settings: store.DefaultShardSettings(),
		})
		w.put(store.KindBackup, "", store.Backup{
			Schema: 1, At: noon.Add(-3 * 24 * time.Hour), By: "coord-a", To: "/var/backups/leasehold/x1", Revision: 7,
			Failure: &store.BackupFailure{
				At: noon.Add(-20 * time.Second), By: "coord-a",
				Why: "write /var/backups/leasehold/x1: no space left on device", Full: true,
			},
		})
	},
	"lost": func(w *world) {
		for _, id := range []string{"coord-a", "coord-b"} {
			w.put(store.KindReplicas, id, store.Replica{
				Schema: 1, ID: id, Version: "v0", Since: noon,
				Waits: &store.Waits{
					Why: "shard default (ID 5eedf00d) is missing from etcd, which held it before", ShardID: "5eedf00d",
					Cluster: "cdf818194e3a8c32", Highest: 4711,
				},
			})
		}
	},
	"mistaken": func(w *world) { // leasehold init after a loss, while no coordinator ran
		mistaken(w)
		w.put(store.KindReplicas, "coord-a",
			store.Replica{Schema: 1, ID: "coord-a", Version: "v0", Since: noon, Waits: &store.Waits{
				Why:     "etcd holds another shard of this name (ID 0bad) than this replica knows (ID 5eedf00d)",
				ShardID: "5eedf00d", Cluster: "cdf818194e3a8c32", Highest: 4711,
			}})
		w.put(store.KindGone, "groups/web", store.Gone{Schema: 1, Group: "web"})
	},
	"mistaken and served": func(w *world) {
		mistaken(w)
		w.put(store.KindLeader, "1a", store.Leader{Schema: 1, Replica: "coord-c", Since: noon})
	},
	"mistaken and used": func(w *world) {
		mistaken(w)
		w.put(store.KindInstances, "web-0-a",
			store.Instance{Schema: 1, ID: "web-0-a", Group: "web", Phase: store.Running})
	},
	"damaged": func(w *world) {
		w.serve()
		g := store.DefaultGroup()
		g.Name, g.Size, g.Provider = "web", 3, "process"
		g.Complete()
		w.put(store.KindGroups, "web", g)
		for _, id := range []string{"web-0-a", "web-1-b", "web-2-c"} {
			slot := int(id[4] - '0')
			w.put(store.KindInstances, id,
				store.Instance{
					Schema: 1, ID: id, Group: "web", Slot: slot, Managed: true, Phase: store.Running,
					Since: noon, Created: noon, Template: "t1",
				})
		}
		last := w.put(store.KindInstances, "web-1-b", "}garbage")
		if _, err := w.st.Commit(w.t.Context(),
			store.Txn{Writes: []store.Write{store.Delete(w.keys.Instance("web-2-c"))}}); err != nil {
			w.t.Fatal(err)
		}
		two := 2
		w.put(store.KindStatus, "web",
			store.Status{Schema: 1, Group: "web", State: store.GroupStarted, Accepted: &g, Damaged: []store.Damaged{{
				Key: w.keys.Instance("web-2-c"), Instance: "web-2-c", Slot: &two, What: store.DamageLost,
				Why: "its key vanished", Since: noon, Last: last,
			}}})
	},
	"recovering": func(w *world) {
		g := store.DefaultGroup()
		g.Name, g.Size, g.Provider = "web", 3, "process"
		g.Complete()
		w.put(store.KindGroups, "web", g)
		for n, id := range []string{"web-0-a", "web-1-b", "web-1-c", "db-0-d"} {
			group, slot, _, _ := store.PlaceOf(id)
			w.put(store.KindExtras, id, store.Extra{
				Schema: 1, Instance: id, Group: group, Provider: "process",
				Zone: "local", Since: noon,
			})
			if n == 0 {
				w.put(store.KindStrays, id, store.Stray{
					Schema: 1, Instance: id, From: "10.0.0.1:5", At: noon,
					Claim: &store.Claim{Group: group, Slot: slot, Managed: true},
				})
			}
		}
	},
	"spoiled": func(w *world) {
		w.serve()
		g := store.DefaultGroup()
		g.Name, g.Size, g.Provider = "web", 4, "process"
		g.Complete()
		var damaged []store.Damaged
		for n, id := range []string{"web-0-a", "web-1-b"} {
			w.put(store.KindInstances, id,
				store.Instance{
					Schema: 1, ID: id, Group: "web", Slot: n, Managed: true, Phase: store.Running,
					Since: noon, Created: noon, Template: "t1",
				})
		}
		w.put(store.KindInstances, "web-1-b", "}garbage")
		damaged = append(damaged, store.Damaged{
			Key: w.keys.Instance("web-1-b"), Instance: "web-1-b",
			What: store.DamageUnreadable, Since: noon,
		})
		w.put(store.KindStatus, "web",
			store.Status{
				Schema: 1, Group: "web", State: store.GroupStarted, Accepted: &g,
				Phases: map[store.Phase]int{store.Running: 4}, Damaged: damaged,
			})
		w.put(store.KindGroups, "web", "garbage")
		w.put(store.KindGroups, "api", g)
		w.put(store.KindStatus, "api", `{"schema":99}`)
	},
	"remains": func(w *world) {
		w.put(store.KindStatus, "web", store.Status{Schema: 1, Group: "web"})
	},
}

var transcriptFiles = map[string]string{
	"shard.yaml": "name: web\nprovider: process\nsize: 3\nworkload: {run: [./web]}\nvars: " +
		"{colour: red}\n---\nname: api\nprovider: process\nsize: 2\n",
	"next.yaml":  "name: web\nprovider: process\nsize: 2\nworkload: {run: [./web, -v]}\nvars: {colour: red}\n",
	"more.yaml":  "name: web\nsize: 5\ntemplate: {instance_type: large}\nvars: {colour: blue}\n",
	"less.yaml":  "name: web\nsize: 1\n",
	"whole.yaml": "name: web\nprovider: process\nsize: 5\nheal: {policy: none}\n",
	"web.yaml":   "name: web\nprovider: process\nsize: 4\nworkload: {run: [./web, -v]}\n",
	"same.yaml":  "name: web\nprovider: process\nsize: 3\nworkload: {run: [./web]}\n",
	"small.yaml": "name: web\nprovider: process\nsize: 1\nworkload: {run: [./web]}\n",
	"two.yaml":   "name: a\nprovider: process\n---\nname: b\nprovider: process\nbudget: {max_expansion: 0}\n",
	"cloud.yaml": "name: cloud\nprovider: moon\n",
	"small-scenario.yaml": "length: 5m\nprovider: {boot: 10s}\nevents:\n- {at: 2m, kill: {count: " +
		"2}}\nexpect: {worst_availability: 60%, machines_created: 5}\n",
	"wrong-scenario.yaml": "length: 5m\nevents:\n- {at: 2m, kil: {}}\n- {at: 6m, kill: {cuont: 2}}\n- {at: 3m, " +
		"apply: typo.yaml}\n- {at: 3m, apply: gone.yaml}\n",
	"zones.yaml": "name: zones\nprovider: process\nsize: 2\ntemplate: {zones: [mars, venus]}\n",
	"large.yaml": "name: web\nprovider: process\nsize: 4\ntemplate: {instance_type: " +
		"large}\nworkload: {run: [./web]}\n",
	"load.yaml":  "name: load\nprovider: process\nscale: {min: 2, max: 8, targets: [{metric: cpu, value: 60}]}\n",
	"load2.yaml": "name: load\nprovider: process\nscale: {min: 2, max: 9, targets: [{metric: cpu, value: 60}]}\n",
	"outside.yaml": fileAt("vars: {home: /opt}", filesRoot+"/app.conf", "${home}/app.key", "${dir}/files/motd",
		"/etc/motd"),
	"inside.yaml": fileAt("vars: {home: "+filesRoot+"}", filesRoot+"/app.conf", "${home}/app.key", "${dir}/files/motd"),
	"typo.yaml":   "name: web\nprovider: process\nbudget:\n  max_expanson: 2\nsize: 1000000\n",
}

// TestTranscripts runs the commands in testdata/*.txt and compares what they print. A line "$
// leasehold …" is run in a pipe, "% leasehold …" on a terminal; lines with "2>" are on standard
// error. Rewrite them with: go test ./cmd/cli -update
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			path, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := rerun(t, string(want))
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("%s says otherwise; got\n%s", file, got)
			}
		})
	}
}

// rerun runs every command of a transcript and returns the new transcript.
func rerun(t *testing.T, script string) string {
	t.Chdir(t.TempDir())
	for name, text := range transcriptFiles {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t)
	var b strings.Builder
	for _, line := range strings.Split(script, "\n") {
		prompt, command, isCommand := strings.Cut(line, " leasehold ")
		switch {
		case strings.HasPrefix(line, "world: "):
			begin := beginnings[strings.TrimPrefix(line, "world: ")]
			if begin == nil {
				begin = lossBeginnings[strings.TrimPrefix(line, "world: ")]
			}
			if begin == nil {
				t.Fatalf("no such world: %s", line)
			}
			begin(w)
			fmt.Fprintln(&b, line)
		case isCommand && (prompt == "$" || prompt == "%"):
			w.terminal = prompt == "%"
			fmt.Fprintf(&b, "%s\n%s", line, shownRun(w, strings.Fields(command)))
		case strings.HasPrefix(line, "#"):
			fmt.Fprintln(&b, line)
		}
	}
	return b.String()
}

func shownRun(w *world, args []string) string {
	code, stdout, stderr := w.run(args...)
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(stdout, "\t", " | "))
	for _, l := range strings.SplitAfter(stderr, "\n") {
		if l != "" {
			b.WriteString("2> " + strings.TrimSuffix(l, "\n") + "\n")
		}
	}
	if code != Done {
		fmt.Fprintf(&b, "exit %d\n", code)
	}
	return b.String()
}
