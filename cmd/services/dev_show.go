package services

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

const (
	demoName    = "demo"
	ownProvider = "process" // of machines on this host, which dev stops and resumes
)

// demoGroup is three small web servers, which are healthy when they answer.
func demoGroup() (store.Group, error) {
	self, err := os.Executable()
	if err != nil {
		return store.Group{}, fmt.Errorf("find this program: %w", err)
	}
	g := store.DefaultGroup()
	g.Name, g.Size, g.Provider = demoName, 3, ownProvider
	g.Workload.Run = []string{self, "demo-web", "--port", "${port}"}
	answers := store.DefaultCheck()
	answers.HTTP = &store.HTTPCheck{Port: "${port}", Path: "/healthz"}
	g.Checks = []store.Check{answers}
	g.Complete()
	return g, g.Validate()
}

// programIsGone reports whether a group is dev's own and runs a program that no longer exists.
func programIsGone(g store.Group) bool {
	if run := g.Workload.Run; len(run) > 1 && run[1] == "demo-web" {
		_, err := os.Stat(run[0])
		return errors.Is(err, fs.ErrNotExist)
	}
	return false
}

// readGroups reads the group files, before anything is started.
func (d *Dev) readGroups() ([]store.Group, error) {
	var all []store.Group
	for _, name := range d.Group {
		f, err := os.Open(name)
		if err != nil {
			return nil, problem("give a readable file", "%s", err)
		}
		groups, err := groupfile.Read(name, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		all = append(all, groups...)
	}
	return all, nil
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// begin applies the group files or, at the very first start, the demo group. It also replaces an
// earlier demo group whose program is gone, for example with another build's directory.
func (w *devWorld) begin(ctx context.Context, first bool, groups []store.Group) error {
	if len(groups) == 0 {
		demo, err := demoGroup()
		if err != nil {
			return err
		}
		if !first {
			kv, err := w.store.Get(ctx, w.keys.Group(demoName))
			if errors.Is(err, store.ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			old, _ := store.Decode[store.Group](kv) // if it is absent or unreadable, nothing is known to be gone
			if !programIsGone(old.Record) {
				return nil
			}
			run := demo.Workload.Run
			demo = old.Record
			demo.Workload.Run = run
		}
		groups = []store.Group{demo}
	}
	for _, g := range groups {
		key := w.keys.Group(g.Name)
		kv, err := w.store.Get(ctx, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		value := store.Encode(g)
		if string(kv.Value) == string(value) {
			continue
		}
		if _, err := w.store.Commit(ctx, store.Txn{
			Conditions: []store.Condition{store.At(key, kv.Modified)}, Writes: []store.Write{store.Put(key, value)},
		}); err != nil {
			return fmt.Errorf("apply group %s: %w", g.Name, err)
		}
	}
	return nil
}

// showJournal prints journal entries as they arrive.
func (w *devWorld) showJournal(ctx context.Context) {
	v, err := w.store.Vitals(ctx)
	if err != nil {
		return
	}
	for b := range w.store.Watch(ctx, w.keys.Of(store.KindEvents), v.Revision) {
		for _, e := range b.Events {
			if entry, err := store.Decode[store.JournalEntry](e.KV); err == nil && !e.Deleted {
				w.print("%s", w.h.Line(entry.Record))
			}
		}
	}
}

// guide explains, once a group is complete, how to watch it heal.
func (w *devWorld) guide(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	said := func(e store.Event) bool {
		kind, _, _ := w.keys.Split(e.KV.Key)
		return kind == store.KindStatus || kind == store.KindAlive || kind == store.KindReports
	}
	for b := range w.store.Watch(ctx, w.keys.Prefix(), w.since+1) {
		if b.Err != nil {
			return
		}
		if !slices.ContainsFunc(b.Events, said) {
			continue
		}
		for _, group := range w.complete(ctx) {
			if w.tellHow(ctx, group) {
				return
			}
		}
	}
}

// complete lists the groups whose instances are all healthy. The status of the last run also counts
// machines that have not started yet, so only what their agents have reported since this start
// counts.
func (w *devWorld) complete(ctx context.Context) (groups []string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	alive := newest[store.Alive](ctx, w, store.KindAlive)
	reports := newest[store.Report](ctx, w, store.KindReports)
	well := map[string]int{}
	for id, in := range newest[store.Instance](ctx, w, store.KindInstances) {
		a, r := alive[id], reports[id].Record
		if in.Record.Managed && in.Record.Phase == store.Running && a.Modified > w.since &&
			a.Record.State == store.StreamOpen && r.Healthy && r.BootID == a.Record.BootID {
			well[in.Record.Group]++
		}
	}
	for group, st := range newest[store.Status](ctx, w, store.KindStatus) {
		if spec := st.Record.Accepted; spec != nil && spec.Size > 0 && st.Record.OK && well[group] >= spec.Size {
			groups = append(groups, group)
		}
	}
	slices.Sort(groups)
	return groups
}

// newest returns the records of a kind that can be read, by name.
func newest[T any](ctx context.Context, w *devWorld, kind string) map[string]store.Versioned[T] {
	list, err := w.store.List(ctx, w.keys.Of(kind), 0)
	if err != nil {
		return nil // the next change shows it
	}
	all := map[string]store.Versioned[T]{}
	for _, kv := range list.KVs {
		if v, err := store.Decode[T](kv); err == nil {
			_, name, _ := w.keys.Split(kv.Key)
			all[name] = v
		}
	}
	return all
}

// tellHow names a process to kill.
func (w *devWorld) tellHow(ctx context.Context, group string) bool {
	look, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	kv, err := w.store.Get(look, w.keys.Shard())
	if err != nil {
		return false
	}
	shard, err := store.Decode[store.Shard](kv)
	if err != nil {
		return false
	}
	list, err := w.processes.List(look, shard.Record.ID)
	if err != nil {
		return false
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Instance < list[j].Instance })
	for _, m := range list {
		if m.Group != group || m.State.Down() {
			continue
		}
		pid, err := w.processes.PID(m.Instance)
		if err != nil {
			continue
		}
		config := ""
		if !w.isUsual() {
			config = "--config " + reason.ShellWord(DevSettings(w.dir)) + " "
		}
		w.print("\nGroup %[1]s is complete. Watch it heal: in another terminal,\n\n    kill -9 %[2]d        # the agent of "+
			"%[3]s%[4]s\n    %[5]s %[6]sexplain %[3]s\n    %[5]s %[6]sstatus\n\nCtrl-C stops everything.\n\n",
			group, pid, m.Instance, serves(m.Address), os.Args[0], config)
		return true
	}
	return false
}

// goOn says which machines keep running after dev: machines of other providers.
func (w *devWorld) goOn(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	list, err := w.store.List(ctx, w.keys.Of(store.KindInstances), 0)
	if err != nil {
		return fmt.Sprintf("machines of other providers than process go on; which there are cannot be read: %s\n", err)
	}
	machines := map[string]int{} // by provider
	groups := map[string][]string{}
	for _, kv := range list.KVs {
		i, err := store.Decode[store.Instance](kv)
		if err != nil || i.Record.Spec.Provider == ownProvider {
			continue
		}
		name := i.Record.Spec.Provider
		machines[name]++
		if !slices.Contains(groups[name], i.Record.Group) {
			groups[name] = append(groups[name], i.Record.Group)
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(machines)) {
		what := fmt.Sprintf("machines of provider %s go on, with their workloads: %d. To remove them, start dev again "+
			"with the same --providers, then:\n", name, machines[name])
		remove := "leasehold group delete %[1]s --confirm %[1]s --wait"
		if name == store.ProviderNone {
			what = fmt.Sprintf("machines that were set up by hand go on, with their workloads: %d. To remove them, "+
				"start dev again, then for each:\n", machines[name])
			remove = "leasehold instance delete ID --confirm ID    # leasehold instance list %s shows them"
		}
		b.WriteString(what)
		for _, group := range groups[name] {
			fmt.Fprintf(&b, "    "+remove+"\n", group)
		}
	}
	return b.String()
}

func serves(address string) string {
	if address == "" {
		return ""
	}
	return ", http://" + address
}
