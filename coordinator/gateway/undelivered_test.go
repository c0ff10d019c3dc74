package gateway_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/coordinator/encryption"
	"github.com/leasehold/leasehold/coordinator/gateway"
	"github.com/leasehold/leasehold/store"
)

// logged collects the lines of a log.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// lines returns the lines with a text since the last call.
func (l *logged) lines(with string) (found []string) {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		if strings.Contains(line, with) {
			found = append(found, line)
		}
	}
	l.buf.Reset()
	return found
}

// A secret that is missing keeps a file from all instances of a group, at each change. That is one
// line, and one a minute that counts the others.
//
// proves FILE-1
func TestWhatIsNotDeliveredIsLoggedOnceForAll(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		log := &logged{}
		ring := encryption.Ring{}.With(encryption.NewKey())
		r := w.serveWith("one", func(d *gateway.Deps) {
			d.Secrets = &keyring{ring: ring}
			d.Logger = slog.New(slog.NewTextHandler(log, nil))
		})
		defer r.stop()
		const agents = 20
		for i := range agents {
			id := fmt.Sprintf("web-%d", i)
			w.workloadRecord(id, withFiles(store.File{Path: "/key", Secret: "db", Mode: "0600"}))
			r.own = w.ca.agent(id, time.Hour)
			a := r.welcomed(newest(id))
			defer a.hangUp()
			a.files()
		}
		const what = `msg="not delivered" what=file`
		if got := log.lines(what); len(got) != 1 || !strings.Contains(got[0], "name=/key") ||
			!strings.Contains(got[0], "there is no such secret: leasehold secret set db") {
			t.Errorf("logged %q", got)
		}
		<-time.After(time.Minute)
		if got := log.lines(what); len(got) != 1 || !strings.Contains(got[0], "instances=20") {
			t.Errorf("after a minute: %q", got)
		}
		<-time.After(3 * time.Minute)
		if got := log.lines(what); len(got) != 0 {
			t.Errorf("nothing happened, and it logs %q", got)
		}
	})
}
