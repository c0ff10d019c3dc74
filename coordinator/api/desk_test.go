package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/view"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

// recorder is an editor that records what it is asked for.
type recorder struct {
	mu      sync.Mutex
	asked   []string
	fails   error
	foreign bool // its user may not read the shard
}

func (s *recorder) note(edit Edit, format string, args ...any) (Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	base := "-"
	if edit.If != nil {
		base = fmt.Sprint(int64(*edit.If))
	}
	asked := fmt.Sprintf(format, args...) + fmt.Sprintf(" at %s dry %t confirm %v", base, edit.DryRun, edit.Confirm)
	if edit.Once != "" {
		asked += " once " + strings.ReplaceAll(edit.Once, "\n", " ")
	}
	s.asked = append(s.asked, asked)
	return Result{Revision: 9, Changed: true}, s.fails
}

func (s *recorder) MayRead(context.Context) bool { return !s.foreign }

func (s *recorder) Apply(_ context.Context, group string, file []byte, edit Edit) (Result, error) {
	return s.note(edit, "apply %s %s", group, file)
}

func (s *recorder) Scale(_ context.Context, group string, size int, edit Edit) (Result, error) {
	return s.note(edit, "scale %s %d", group, size)
}

func (s *recorder) Delete(_ context.Context, group string, edit Edit) (Result, error) {
	return s.note(edit, "delete %s", group)
}

func (s *recorder) Hold(_ context.Context, hold Hold, edit Edit) (Result, error) {
	return s.note(edit, "hold %s", hold.Why)
}

func (s *recorder) Release(_ context.Context, edit Edit) (Result, error) {
	return s.note(edit, "release")
}

func (s *recorder) Freeze(_ context.Context, freeze *Freeze, edit Edit) (Result, error) {
	return s.note(edit, "freeze %+v", freeze)
}

func (s *recorder) Evacuate(_ context.Context, zone string, end bool, edit Edit) (Result, error) {
	return s.note(edit, "evacuate %s %t", zone, end)
}

func (s *recorder) Protect(_ context.Context, id string, protection *Protection, edit Edit) (Result, error) {
	return s.note(edit, "protect %s %+v", id, protection)
}

func (s *recorder) Drill(_ context.Context, group string, drill Drill, edit Edit) (Result, error) {
	return s.note(edit, "drill %s %+v", group, drill)
}

func (s *recorder) Create(_ context.Context, group string, edit Edit) (Result, error) {
	return s.note(edit, "create %s", group)
}

func (s *recorder) Adopt(_ context.Context, id string, adoption Adoption, edit Edit) (Result, error) {
	return s.note(edit, "adopt %s %+v", id, adoption)
}

func (s *recorder) GroupAction(_ context.Context, group, action string, edit Edit) (Result, error) {
	return s.note(edit, "%s %s", action, group)
}

func (s *recorder) InstanceAction(_ context.Context, id, action string, edit Edit) (Result, error) {
	return s.note(edit, "%s %s", action, id)
}

// desk is a handler over a store in memory.
type desk struct {
	t        *testing.T
	st       *memstore.Store
	keys     store.Keys
	recorder *recorder
	h        *Handler
	logins   int
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	db := memstore.New(memstore.Config{})
	t.Cleanup(db.Close)
	d := &desk{t: t, st: db.Connect(), keys: store.KeysOf("test"), recorder: &recorder{}}
	c, j := cache.New(d.keys), journal.New(d.keys, journal.MaxEntries)
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() { _ = c.Run(ctx, d.st) })
	following.Go(func() { _ = j.Run(ctx, d.st) })
	t.Cleanup(func() { cancel(); following.Wait() })
	for moved := j.Moved(); !j.View(func([]journal.Entry, time.Time) {}); moved = j.Moved() {
		<-moved
	}
	var end func()
	d.h, end = New(Deps{Views: view.New("test", c, j), Cache: c, Journal: j, Login: d.login})
	t.Cleanup(end)
	return d
}

func (d *desk) login(_ context.Context, user, password string) (Editor, func(), error) {
	d.logins++
	if user != "eva" || password != "right" {
		return nil, nil, fmt.Errorf("connect to etcd: %w", store.ErrLogin)
	}
	return d.recorder, func() {}, nil
}

func (d *desk) put(key string, record any) store.Revision {
	d.t.Helper()
	rev, err := d.st.Commit(d.t.Context(), store.Txn{Writes: []store.Write{store.Put(key, store.Encode(record))}})
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.h.Cache.WaitFor(d.t.Context(), rev); err != nil {
		d.t.Fatal(err)
	}
	return rev
}

func (d *desk) group(name string, size int) store.Revision {
	d.t.Helper()
	g := store.DefaultGroup()
	g.Name, g.Provider, g.Size = name, "process", size
	g.Workload.Run, g.Paused = []string{"./web"}, true
	g.Complete()
	return d.put(d.keys.Group(name), g)
}

// ask sends a request; more are headers, as pairs.
func (d *desk) ask(method, path, body string, more ...string) (code int, text string, header http.Header) {
	d.t.Helper()
	r := httptest.NewRequestWithContext(d.t.Context(), method, Root+path, strings.NewReader(body))
	for i := 0; i < len(more); i += 2 {
		r.Header.Add(more[i], more[i+1])
	}
	if r.Header.Get("Authorization") == "" {
		r.SetBasicAuth("eva", "right")
	}
	w := httptest.NewRecorder()
	d.h.ServeHTTP(w, r)
	return w.Code, w.Body.String(), w.Result().Header
}
