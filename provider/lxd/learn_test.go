package lxd

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// inMemory sends requests to an imitation of LXD without a connection.
type inMemory struct {
	lxd    *imitation
	before func(*http.Request) http.HandlerFunc // answers in place of the imitation; nil: it does not
}

func (m *inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	serve := m.lxd.ServeHTTP
	if m.before != nil {
		if other := m.before(r); other != nil {
			serve = other
		}
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	serve(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// inImitation is a provider, and its LXD with running containers of these instances.
func inImitation(t *testing.T, instances ...string) (*Provider, *inMemory) {
	t.Helper()
	p, err := New(Config{Socket: "/none", Image: "tiny", Pool: "default", CallTimeout: "1m"})
	if err != nil {
		t.Fatal(err)
	}
	m := &inMemory{lxd: newImitation()}
	p.client.http = &http.Client{Transport: m}
	for _, id := range instances {
		req := request1()
		req.Bootstrap.Instance, req.Zone = id, "local"
		if _, err := p.Create(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	return p, m
}

// reboot starts a container again without any call of ours.
func (l *imitation) reboot(name string) (boot string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.starts++
	c := l.containers[name]
	c.revision++
	c.used = time.Now().UTC().Format(time.RFC3339Nano)
	c.boot = fmt.Sprintf("00000000-0000-4000-8000-%012d", l.starts)
	return c.boot
}

func bootOf(t *testing.T, p *Provider) string {
	t.Helper()
	all, err := p.List(t.Context(), "s1")
	if err != nil || len(all) != 1 {
		t.Fatalf("listed as %+v, %v", all, err)
	}
	return all[0].BootID
}

// A boot that a List has named is known to Restart, although it could not be noted in the container
// before that ended. The note is made by a later List.
//
// proves SAFE-8, HEAL-14
func TestABootThatCouldNotBeNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, m := inImitation(t, "i1")
		first := bootOf(t, p)
		<-time.After(time.Minute)
		refused := 0
		m.before = func(r *http.Request) http.HandlerFunc {
			if r.Method != http.MethodPatch || refused > 0 {
				return nil
			}
			refused++
			return refuse(http.StatusPreconditionFailed, "ETag doesn't match")
		}
		second := m.lxd.reboot("ls-i1")
		if boot := bootOf(t, p); boot != second || second == first || refused != 1 {
			t.Fatalf("listed with boot %s, want %s; refused %d times", boot, second, refused)
		}
		c := m.lxd.containers["ls-i1"]
		c.status = isStopped
		starts := m.lxd.starts
		if err := p.Restart(t.Context(), "s1", "i1", second); err != nil || m.lxd.starts != starts+1 {
			t.Errorf("Restart of the boot that has ended starts it %d times, %v", m.lxd.starts-starts, err)
		}

		refused = 0
		<-time.After(time.Minute)
		third := m.lxd.reboot("ls-i1")
		for range 2 {
			if boot := bootOf(t, p); boot != third {
				t.Errorf("listed with boot %s, want %s", boot, third)
			}
			<-time.After(5 * time.Second)
		}
		if note := c.config[keyBoot]; refused != 1 || !strings.HasSuffix(note, third) {
			t.Errorf("refused %d times, the note is %q, want of boot %s", refused, note, third)
		}
	})
}

// Containers that answer no question delay a List by little, and ever more seldom. Others are asked
// meanwhile.
//
// proves DET-4, DET-12
func TestQuestionsWithoutAnAnswerDelayLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ids []string
		for i := range 3*askers + 1 {
			ids = append(ids, fmt.Sprintf("i%02d", i))
		}
		p, m := inImitation(t, ids...)
		<-time.After(time.Minute)
		last := ids[len(ids)-1]
		m.before = func(r *http.Request) http.HandlerFunc {
			if !strings.HasSuffix(r.URL.Path, "/files") || strings.Contains(r.URL.Path, last) {
				return nil
			}
			return func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		}
		var boot string
		for _, id := range ids {
			boot = m.lxd.reboot(nameOf(id))
		}
		var waited time.Duration
		learned := -1
		const hour = 720 // Lists
		for i := range hour {
			begun := time.Now()
			all, err := p.List(t.Context(), "s1")
			if err = errors.Join(err, t.Context().Err()); err != nil || len(all) != len(ids) {
				t.Fatalf("%d are listed, %v", len(all), err)
			}
			took := time.Since(begun)
			if took > questionsFor {
				t.Errorf("List %d took %s", i, took)
			}
			waited += took
			for _, m := range all {
				if m.Instance == last && m.BootID == boot && learned < 0 {
					learned = i
				}
				if m.State != provider.StateRunning {
					t.Errorf("listed as %+v", m)
				}
			}
			<-time.After(5 * time.Second)
		}
		if most := 2 * time.Minute; waited > most {
			t.Errorf("the Lists of an hour were delayed by %s", waited)
		}
		if learned < 0 || learned > 4 {
			t.Errorf("the boot of the container that answers was learned by List %d", learned)
		}
		t.Logf("delayed by %s in an hour, learned by List %d", waited, learned)
	})
}
