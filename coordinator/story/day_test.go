package story

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// usual is a shard of three replicas on an etcd of three members, reached over a network, after a
// normal start.
func usual() *Shard {
	st := &Shard{Name: "default", Revision: 7, Leads: true}
	st.Shard = store.Versioned[store.Shard]{Modified: 1, Record: store.Shard{Schema: 1, Created: noon.Add(-time.Hour)}}
	st.Served = store.Versioned[store.Served]{
		Modified: 1,
		Record:   store.Served{At: noon.Add(-9 * time.Second), Replica: "a", Took: store.Duration(5 * time.Millisecond)},
	}
	st.Leader.Record.Replica = "a"
	for _, id := range []string{"a", "b", "c"} {
		r := store.Replica{ID: id, Address: id + ":7420", Version: "v1"}
		st.Replicas = append(st.Replicas, store.Versioned[store.Replica]{Modified: 1, Record: r})
		st.Served.Record.Replicas = append(st.Served.Record.Replicas,
			store.SeenReplica{ID: id, Address: r.Address, At: st.Served.Record.At})
	}
	st.Etcd = &store.Members{CertificateEnds: noon.AddDate(1, 0, 0)}
	for _, id := range []string{"a", "b", "c"} {
		st.Etcd.All = append(st.Etcd.All, store.Member{
			Name: id, Address: id + ":2379", Version: "3.7.3", Remote: true, Size: 20 << 20, Quota: 8 << 30,
			CertificateEnds: noon.AddDate(1, 0, 0),
		})
	}
	return st
}

// What the last leader has noted is not told of a shard in which none leads.
//
// proves DAY-3
func TestWhatIsKnownWithoutALeader(t *testing.T) {
	st := usual()
	st.Leads, st.Replicas = false, st.Replicas[:2]
	st.Served.Record.Silent = []store.Silent{{Provider: "cloud", Why: "broken"}}
	st.Served.Record.Took = store.Duration(time.Second)
	for _, now := range []time.Time{noon, noon.Add(time.Hour), noon.Add(-time.Minute)} {
		if found := replicaProblems(st, now); len(found) > 0 {
			t.Errorf("at %s: %+v", now, found)
		}
	}
}

// held is a group whose work is blocked.
func held(name string, kind store.BlockedKind, of store.BlockedFacts) Known {
	st := store.Status{Group: name, Accepted: &store.Group{}, Blocked: []store.Blocked{{
		Rule: "PROV-5", Kind: kind, Work: store.WorkCreateMissing, Of: of,
	}}}
	return Known{
		Name: name, Stored: store.KV{Modified: 1, Value: store.Encode(store.DefaultGroup())},
		Status: store.Versioned[store.Status]{Modified: 1, Record: st},
	}
}

// A backup that fails for want of space needs another remedy than others.
//
// proves DAY-2
func TestWhatHelpsABackupThatFails(t *testing.T) {
	for full, want := range map[bool]string{true: "free space on that disk", false: "correct --backup-dir"} {
		st := usual()
		st.Backup.Record.Failure = &store.BackupFailure{By: "b", At: noon, Why: "it fails", Full: full}
		if found := backupProblems(st, noon); len(found) != 1 || !strings.HasPrefix(found[0].Remedies.String(), want) {
			t.Errorf("full %t: %+v", full, found)
		}
	}
}

// Each trouble is one problem with what to do about it, and after a normal start there is none.
//
// proves DAY-3, PROV-5
func TestProblemsOfRunningIt(t *testing.T) {
	if found := Problems(usual(), noon); len(found) != 0 {
		t.Errorf("a normal start has problems: %+v", found)
	}
	later := func(d time.Duration) time.Time { return noon.Add(d) }
	for name, test := range map[string]struct {
		now  time.Time
		with func(*Shard)
		want []string // what each problem is about, and a part of what it says
	}{
		"a replica is down": {
			with: func(st *Shard) { st.Replicas = st.Replicas[:2] },
			want: []string{"c: this coordinator is down: it was seen 9s ago"},
		},
		"another replica serves its address": {
			with: func(st *Shard) { st.Replicas[2].Record.ID = "c-4711" },
		},
		"a replica was down for a day": {
			with: func(st *Shard) {
				st.Replicas = st.Replicas[:2]
				st.Served.Record.Replicas[2].At = noon.Add(-store.SeenFor)
			},
		},
		"the leader is late": {now: later(time.Minute), want: []string{"a: it leads and has not noted for 1m"}},
		"this machine's clock": {
			now:  later(-12 * time.Second),
			want: []string{"a: its clock is ahead of this machine's by 3s"},
		},
		"a slow disk": {with: func(st *Shard) {
			st.Served.Record.Took = store.Duration(time.Second)
		}, want: []string{"etcd: it took 1s"}},
		"a clock that is ahead": {with: func(st *Shard) {
			st.Replicas[1].Record.ClockOff = store.Duration(90 * time.Second)
		}, want: []string{"b: its clock is 1m30s ahead of the leader's"}},
		"a clock that is behind": {with: func(st *Shard) {
			st.Replicas[1].Record.ClockOff = -store.Duration(time.Hour)
		}, want: []string{"b: its clock is 1h0m0s behind the leader's"}},
		"a part of a server ended": {with: func(st *Shard) {
			st.Replicas[1].Record.Ended = []store.PartEnds{{
				Part: "member", Times: 1, Since: noon.Add(-2 * time.Minute), Last: noon.Add(-2 * time.Minute),
				Why: "signal: killed: it may have run out of memory", Next: "look at the kernel's log",
			}}
		}, want: []string{
			"b: its etcd member ended 2m ago, and was started again: signal: killed: it may have run out of memory",
		}},
		"a whole server ended": {with: func(st *Shard) {
			st.Replicas[1].Record.Ended = []store.PartEnds{{
				Part: "server", Times: 1, Since: noon.Add(-2 * time.Minute), Last: noon.Add(-2 * time.Minute), Why: "it was killed",
			}}
		}, want: []string{"b: leasehold server, with both parts, ended 2m ago, and was started again: it was killed"}},
		"parts of a server ended long ago, one of them often": {with: func(st *Shard) {
			st.Replicas[1].Record.Ended = []store.PartEnds{
				{Part: "member", Times: 2, Since: noon.Add(-9 * time.Hour), Last: noon.Add(-time.Hour)},
				{Part: "replica", Times: 3, Since: noon.Add(-9 * time.Hour), Last: noon.Add(-5 * time.Hour), Why: "exit status 2"},
			}
		}, want: []string{
			"b: its replica ended 3 times since 2026-03-01T03:00:00Z, last 5h ago, and was started again: exit status 2",
		}},
		"a part of a server ended often, before a day": {with: func(st *Shard) {
			st.Replicas[1].Record.Ended = []store.PartEnds{{Part: "replica", Times: 9, Last: noon.Add(-store.EndedFor)}}
		}},
		"agents of an old version": {with: func(st *Shard) {
			st.Replicas[1].Record.OtherAgents, st.Replicas[1].Record.OtherVersions = 2, []string{"v0"}
		}, want: []string{"b: 2 of its agents are of another version (v0) than this coordinator (v1)"}},
		"agents are refused": {with: func(st *Shard) {
			foreign := store.Refused{
				Rule: "DET-18", What: "stream refused", Why: "its protocol is newer than any that is spoken here",
				Detail: "upgrade the coordinators first", Instance: "web-0-a", Proved: true,
				From: "10.0.0.7:5", At: noon.Add(-time.Minute),
			}
			again, over := foreign, foreign
			again.Instance, again.At = "web-1-b", noon
			over.Why, over.At = "it is over", noon.Add(-store.RefusedFor-time.Minute)
			st.Replicas[0].Record.Refused = []store.Refused{foreign, over}
			st.Replicas[1].Record.Refused = []store.Refused{again, {
				Rule: "SEC-1", What: "connection refused", Why: "the certificate has expired", Instance: "web-2-c",
				From: "10.0.0.8:5", At: noon,
			}}
		}, want: []string{
			"b: stream refused: its protocol is newer than any that is spoken here; the last was web-1-b, from 10.0.0.7:5, " +
				"0s ago (upgrade the coordinators first)",
			"b: connection refused: the certificate has expired; the last was one that calls itself web-2-c, from 10.0.0.8:5, " +
				"0s ago",
		}},
		"a provider refuses": {with: func(st *Shard) {
			st.Served.Record.Silent = []store.Silent{{Provider: "cloud", Why: "there is no secret openstack"}, {
				Balancer: "web", Why: "connection refused",
			}}
		}, want: []string{
			"cloud: this provider does not list its machines, so nothing is known of them: there is no secret openstack",
			"web: this load balancer does not answer, so nothing is known of its members: connection refused",
		}},
		"groups wait for a provider": {with: func(st *Shard) {
			st.Served.Record.Silent = []store.Silent{{Provider: "cloud", Why: "expired", Refused: true}}
			st.Groups = []Known{
				held("db", store.BlockedByMissingList, store.BlockedFacts{Name: "cloud"}),
				held("shop", store.BlockedByRefusal, store.BlockedFacts{Name: "cloud", Count: 1, Text: "expired", Flag: true}),
				held("web", store.BlockedByRefusal, store.BlockedFacts{Name: "cloud", Count: 2, Text: "it expired", Flag: true}),
			}
		}, want: []string{"cloud: this provider does not list its machines, so nothing is known of them: expired; until " +
			"it does, nothing is changed in db; 3 machines wait to be created in shop, web"}},
		"quotas": {with: func(st *Shard) {
			st.Served.Record.Silent = []store.Silent{{Provider: "cloud", Why: "broken"}}
			st.Groups = []Known{
				held("db", store.BlockedByRefusal, store.BlockedFacts{Name: "cloud", Count: 1, Text: "40 cores"}),
				held("shop", store.BlockedByRefusal, store.BlockedFacts{Name: "cloud", Count: 2, Text: "9 disks"}),
				held("web", store.BlockedByRefusal, store.BlockedFacts{Name: "cloud", Count: 3, Text: "40 cores"}),
			}
		}, want: []string{
			"cloud: this provider does not list its machines, so nothing is known of them: broken",
			"cloud: creation of the missing instances of db, web: provider cloud: 40 cores (4 machines wait)",
			"shop: creation of the missing instances: provider cloud: 9 disks (2 machines wait)",
		}},
		"a member is down": {with: func(st *Shard) {
			st.Etcd.All[1].Down = "connection refused"
		}, want: []string{"etcd b: it does not answer at b:2379: connection refused"}},
		"an untried version": {with: func(st *Shard) {
			st.Etcd.All[1].Version = "3.4.30"
		}, want: []string{"etcd b: it is of version 3.4.30"}},
		"nearly full": {with: func(st *Shard) {
			st.Etcd.All[1].Size = 7 << 30
		}, want: []string{"etcd b: its database has 7168 MiB of the 8192 MiB"}},
		"full": {with: func(st *Shard) {
			st.Etcd.All[1].Full = true
		}, want: []string{"etcd b: it rejects writes"}},
		"corrupt": {with: func(st *Shard) {
			st.Etcd.All[1].Corrupt = true
		}, want: []string{"etcd b: its data differs"}},
		"a learner": {with: func(st *Shard) {
			st.Etcd.All[1].Learner = true
		}, want: []string{"etcd b: it is a learner"}},
		"a member's certificate": {with: func(st *Shard) {
			st.Etcd.All[1].CertificateEnds = noon.Add(24 * time.Hour)
		}, want: []string{"etcd b: its certificate ends on"}},
		"the caller's certificate": {with: func(st *Shard) {
			st.Etcd.CertificateEnds = noon.Add(-time.Hour)
		}, want: []string{"you: your certificate for etcd ends on"}},
		"no authentication": {with: func(st *Shard) {
			st.Etcd.NoAuthentication = true
		}, want: []string{"etcd: authentication is off"}},
		"plaintext": {with: func(st *Shard) {
			st.Etcd.All[0].Plain = true
		}, want: []string{"etcd: it is reached over a network without TLS"}},
		"no backup for a day": {now: later(24 * time.Hour), with: func(st *Shard) {
			st.Served.Record.At = later(24 * time.Hour)
		}, want: []string{"default: it was never backed up"}},
		"backed up within a day": {now: later(25 * time.Hour), with: func(st *Shard) {
			st.Served.Record.At, st.Backup.Record.At = later(25*time.Hour), later(time.Hour+1)
		}},
		"a backup of a day ago": {now: later(25 * time.Hour), with: func(st *Shard) {
			st.Served.Record.At, st.Backup.Record.At = later(25*time.Hour), later(time.Hour)
			st.Backup.Record.By, st.Backup.Record.To = "b", "/backups"
		}, want: []string{"default: no backup for 24h: the last was made by b, to /backups"}},
		"not backed up, of less than a day": {now: later(23*time.Hour - 1), with: func(st *Shard) {
			st.Served.Record.At = later(23*time.Hour - 1)
		}},
		"a backup fails": {with: func(st *Shard) {
			st.Backup.Record.Failure = &store.BackupFailure{By: "b", At: later(-time.Minute), Why: "permission denied"}
		}, want: []string{"b: its backup failed 1m ago: permission denied"}},
		"a backup has failed, and was made since": {with: func(st *Shard) {
			st.Backup.Record.At = later(-time.Minute)
			st.Backup.Record.Failure = &store.BackupFailure{By: "b", At: later(-time.Minute), Why: "permission denied"}
		}},
		"a member does not answer: no more is known of it": {with: func(st *Shard) {
			st.Etcd.All[1] = store.Member{Name: "b", Address: "b:2379", Remote: true, Down: "connection refused"}
		}, want: []string{"etcd b: it does not answer"}},
		"no leader, and a member is down": {with: func(st *Shard) {
			st.Etcd.All[0].NoLeader, st.Etcd.All[2].NoLeader = true, true
			st.Etcd.All[1].Down = "connection refused"
		}, want: []string{"etcd: no quorum: etcd b does not answer: 2 of 3 members must", "etcd b: it does not answer"}},
		"no leader, and all answer": {with: func(st *Shard) {
			st.Etcd.All[0].NoLeader = true
		}, want: []string{"etcd: no quorum: all members answer, and they have no leader"}},
		"all members are down": {with: func(st *Shard) {
			for i := range st.Etcd.All {
				st.Etcd.All[i].NoLeader, st.Etcd.All[i].Down = true, "connection refused"
			}
		}, want: []string{"etcd a: it does not", "etcd b: it does not", "etcd c: it does not"}},
		"four fifths full": {with: func(st *Shard) {
			st.Etcd.All[1].Size, st.Etcd.All[1].Quota = 80<<20, 100<<20
		}, want: []string{"etcd b: its database has 80 MiB of the 100 MiB"}},
		"not yet four fifths full": {with: func(st *Shard) {
			st.Etcd.All[1].Size, st.Etcd.All[1].Quota = 80<<20-1, 100<<20
		}},
		"a quota that is not known": {with: func(st *Shard) { st.Etcd.All[1].Quota = 0 }},
		"as full as a large quota allows": {with: func(st *Shard) {
			st.Etcd.All[1].Size, st.Etcd.All[1].Quota = 10<<30-1, 10<<30
		}, want: []string{"etcd b: its database has 10239 MiB of the 10 GiB"}},
		"certificates for two weeks, or of an end that is not known": {with: func(st *Shard) {
			st.Etcd.All[0].CertificateEnds = noon.Add(certificateNear)
			st.Etcd.All[1].CertificateEnds, st.Etcd.CertificateEnds = time.Time{}, time.Time{}
		}},
		"certificates that end within two weeks": {with: func(st *Shard) {
			st.Etcd.All[1].CertificateEnds = noon.Add(certificateNear - 1)
			st.Etcd.CertificateEnds, st.Etcd.By = noon.Add(certificateNear-1), "a"
		}, want: []string{"etcd b: its certificate ends on 2026-03-15", "a: its certificate for etcd ends on 2026-03-15"}},
		"the caller's certificate for two weeks": {with: func(st *Shard) {
			st.Etcd.CertificateEnds = noon.Add(certificateNear)
		}},
		"a replica knows no authority": {with: func(st *Shard) {
			st.Replicas[1].Record.AuthorityStates = map[string]store.AuthorityState{"web": {Problem: "no such file"}}
		}, want: []string{"b: authority web for workloads' certificates is not known to b: no such file"}},
		"three notes of the leader are missing": {
			now: later(servedLate - 9*time.Second), want: []string{"a: it leads and has not noted for 35s"},
		},
		"less than three notes are missing": {
			now: later(servedLate - 9*time.Second - 1),
			with: func(st *Shard) {
				st.Served.Record.Silent = []store.Silent{{Provider: "cloud", Why: "broken"}}
			},
			want: []string{"cloud: this provider does not list its machines"},
		},
		"what a leader that is late has noted of providers": {
			now: later(servedLate - 9*time.Second),
			with: func(st *Shard) {
				st.Served.Record.Silent = []store.Silent{{Provider: "cloud", Why: "broken"}}
			},
			want: []string{"a: it leads and has not noted"},
		},
		"a clock that is a second ahead": {
			now: later(-10 * time.Second), want: []string{"a: its clock is ahead of this machine's by 1s"},
		},
		"a clock that is less than a second ahead": {now: later(-10*time.Second + 1)},
		"a disk that is nearly slow": {with: func(st *Shard) {
			st.Served.Record.Took = store.Duration(slowWrite - 1)
		}},
		"a disk that is just slow": {with: func(st *Shard) {
			st.Served.Record.Took = store.Duration(slowWrite)
		}, want: []string{"etcd: it took 300ms"}},
		"nothing is noted yet": {with: func(st *Shard) { st.Served = store.Versioned[store.Served]{} }},
		"plain, but on this machine": {with: func(st *Shard) {
			st.Etcd.NoAuthentication = true
			for i := range st.Etcd.All {
				st.Etcd.All[i].Remote, st.Etcd.All[i].Plain = false, true
			}
		}},
		"no quorum": {
			with: func(st *Shard) {
				st.Etcd.All[0].NoLeader = true
				st.Etcd.All[1].Down, st.Etcd.All[2].Down = "connection refused", "no answer in 2s"
			},
			want: []string{
				"etcd: no quorum: etcd b and etcd c do not answer: 2 of 3 members must",
				"etcd b: it does not answer", "etcd c: it does not answer",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			st, now := usual(), noon
			if test.with != nil {
				test.with(st)
			}
			if !test.now.IsZero() {
				now = test.now
			}
			found := Problems(st, now)
			fits := slices.EqualFunc(found, test.want, func(p Problem, want string) bool {
				return strings.HasPrefix(p.About+": "+p.What, want) && len(p.Remedies) > 0
			})
			if !fits {
				t.Errorf("got %+v\nwant %q", found, test.want)
			}
		})
	}
}

// Agents of an old version are no step of an upgrade while coordinators are: these come first.
//
// proves DAY-3
func TestCoordinatorsComeBeforeAgents(t *testing.T) {
	st := usual()
	st.Replicas[1].Record.OtherAgents, st.Replicas[1].Record.OtherVersions = 1, []string{"v0"}
	for _, c := range []struct{ version, next string }{{"v1", installAgents}, {"v0", "leasehold upgrade check"}} {
		st.Replicas[0].Record.Version = c.version
		found := Problems(st, noon)
		if len(found) != 1 || found[0].About != "b" || !strings.Contains(found[0].Remedies.String(), c.next) {
			t.Errorf("with another coordinator of %s: %+v", c.version, found)
		}
	}
}
