package server

import (
	"encoding/json"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/provider/durable"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

// A call without a valid token is refused while another host joins: no such call waits, or keeps a
// host that has a token waiting. That host waits for a bounded time.
//
// proves DAY-1
func TestCallsWithoutATokenDoNotQueue(t *testing.T) {
	p, r := first(t)
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New(memstore.Config{})
		defer db.Close()
		a := &admission{place: p, store: db.Connect(), log: slog.New(slog.DiscardHandler), limit: make(chan struct{}, 1)}
		text, err := p.invite(t.Context(), a.store, r.Shard, "eva")
		if err != nil {
			t.Fatal(err)
		}
		valid, err := parseToken(text)
		if err != nil {
			t.Fatal(err)
		}
		a.limit <- struct{}{} // another host joins, and does not end
		for _, c := range []struct {
			what, secret string
			code         codes.Code
			waits        time.Duration
		}{{"made up", store.NewToken(), codes.PermissionDenied, 0}, {"valid", valid.secret, codes.Unavailable, joinTime}} {
			call, err := json.Marshal(joinCall{Token: c.secret, Name: "b"})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			_, err = a.answer(t.Context(), call)
			if waited := time.Since(began); status.Code(err) != c.code || waited != c.waits {
				t.Errorf("%s: %v after %s", c.what, err, waited)
			}
		}
	})
}

// The shared files are handed out as they were before an exchange of files, or as they are after
// it.
//
// proves DAY-1
func TestSharedFilesAreOfOneTime(t *testing.T) {
	p, _ := first(t)
	next, _ := first(t)
	cert, key := "pki/agents/ca.crt", "pki/agents/ca.key"
	want := map[string][]byte{}
	for _, name := range []string{cert, key} {
		text, err := os.ReadFile(next.file(name))
		if err != nil {
			t.Fatal(err)
		}
		want[name] = text
	}
	if err := os.Remove(p.file(key)); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(p.file(key), 0o600); err != nil {
		t.Fatal(err)
	}
	exchanged := make(chan error, 1)
	go func() {
		pipe, err := os.OpenFile(p.file(key), os.O_WRONLY, 0) // once the certificate was read
		for _, name := range []string{cert, key} {
			if err == nil {
				err = durable.Replace(p.file(name), want[name], 0o600)
			}
		}
		if err == nil {
			_, err = pipe.Write(want[key])
		}
		_ = pipe.Close()
		exchanged <- err
	}()
	got, err := p.readShared()
	if err != nil {
		t.Fatal(err)
	}
	if err := <-exchanged; err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		if string(got[name]) != string(text) {
			t.Errorf("%s is of another time", name)
		}
	}
}
