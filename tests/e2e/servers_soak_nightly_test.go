//go:build nightly

package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/growth"
)

var serverSoak = flag.Duration("server-soak", time.Second,
	"for how long TestServersSoak goes on; it ends with the round in which that is over")

// On three hosts of leasehold server a group grows, shrinks and is rolled, settings change, and the
// hosts make backups on their schedule. What comes round within days takes minutes here. After
// warm-up no part of a host may use more memory or files, and neither etcd's data nor the backups
// may grow.
//
// proves DAY-1, DAY-2
func TestServersSoak(t *testing.T) {
	t.Parallel()
	c := newHosts(t)
	backups := filepath.Join(c.dir, "backups")
	c.flags = []string{"--backup-dir", filepath.Join(backups, "@host"), "--backup-every", "1m", "--backup-keep", "3"}
	hosts := c.three()
	c.must("config", "set", "events_kept=4m", "compact_after=2m")
	soak := &serversSoak{hosts: c, of: map[string]*growth.Series{}}
	began := time.Now()
	for round := 0; round == 0 || time.Since(began) < *serverSoak; round++ {
		on := hosts[round%3]
		c.settings = "LEASEHOLD_CONFIG=" + filepath.Join(on.dir, "config.yaml")
		size := 2 + round%3
		c.must("group", "apply", "-f", c.groupFile("web", size, fmt.Sprintf("vars: {ROUND: %q}", fmt.Sprint(round))),
			"--confirm", "web", "--wait")
		c.must("config", "set", "provider_poll="+[]string{"1s", "2s"}[round%2])
		used := c.usedByEtcd()
		c.must("backup", filepath.Join(c.dir, "by-hand"))
		c.await("the group", func() bool { return c.h.complete("web", size) })
		for _, h := range hosts {
			for _, part := range []string{"member", "replica"} {
				if h.starts(part) != 1 {
					t.Fatalf("the %s of %s was started again: %s", part, h.name, h.run.stderr.String())
				}
				soak.read(h.name+" "+part, c.part(h, part))
			}
			soak.read(h.name+" supervisor", h.run.PID())
			soak.add(h.name, "etcd's data", used[h.name], growth.Bytes, growth.Allowance{Share: 0.1, More: 4 << 20})
			// etcd makes this file 16 MiB larger when a moment needs it, and never smaller.
			soak.add(h.name, "etcd's file", float64(sizeOf(t, filepath.Join(h.dir, "etcd", "member", "snap"))),
				growth.Bytes, growth.Allowance{Share: 0.1, More: 20 << 20})
		}
		soak.add("backups", "bytes", float64(sizeOf(t, backups)), growth.Bytes,
			growth.Allowance{Share: 0.3, More: 16 << 10})
	}
	var all []growth.Series
	for _, name := range soak.order {
		s := *soak.of[name]
		if all = append(all, s); s.Judge().Grows() {
			t.Error(s.Tell())
		}
	}
	t.Logf("%s:\n%s", time.Since(began).Round(time.Second), growth.Table(all))
}

// usedByEtcd returns how much of its file each host's member uses for data.
func (c *hosts) usedByEtcd() map[string]float64 {
	c.t.Helper()
	var status struct{ Etcd store.Members }
	text := c.must("status", "-o", "json")
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		c.t.Fatalf("%v in %s", err, text)
	}
	used := map[string]float64{}
	for _, m := range status.Etcd.All {
		used[m.Name] = float64(m.Used)
	}
	if len(used) != len(c.all) {
		c.t.Fatalf("members of %d hosts: %s", len(used), text)
	}
	return used
}

// serversSoak are the readings of all rounds.
type serversSoak struct {
	*hosts
	of    map[string]*growth.Series
	order []string
}

func (s *serversSoak) add(of, what string, value float64, unit growth.Unit, may growth.Allowance) {
	name := of + " " + what
	if s.of[name] == nil {
		s.of[name] = &growth.Series{Of: of, What: what, Unit: unit, May: may}
		s.order = append(s.order, name)
	}
	s.of[name].Values = append(s.of[name].Values, value)
}

// read reads what the kernel says of a process. A member keeps its log of up to 10,000 requests in
// memory, which may not be full by the end.
func (s *serversSoak) read(of string, pid int) {
	s.t.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, "RssAnon:"); found {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			if err != nil {
				s.t.Fatal(err)
			}
			may := growth.Allowance{Share: 0.15, More: 6 << 20}
			if strings.HasSuffix(of, "member") {
				may.More = 10_000 * 1024
			}
			s.add(of, "memory", kib*1024, growth.Bytes, may)
		}
	}
	open, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.add(of, "descriptors", float64(len(open)), 0, growth.Allowance{Share: 0.2, More: 8})
}

// sizeOf is how much the files below a directory hold.
func sizeOf(t *testing.T, dir string) (size int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return nil //nolint:nilerr // it was removed meanwhile
		}
		size += info.Size()
		return nil
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return size
}
