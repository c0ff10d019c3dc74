package parts

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcdstore"
)

// role says, in the environment of a process that a test starts, which part it is.
const role = "LEASEHOLD_TEST_PART"

// limit bounds what must not hang.
const limit = 2 * time.Minute

func TestMain(m *testing.M) {
	if as := os.Getenv(role); as != "" {
		if err := Serve(context.Background(), os.Stdin, os.Stdout,
			func(ctx context.Context, ready func(Ready) error) error { return play(ctx, as, ready) }); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// play returns what a part does that a test has started.
func play(ctx context.Context, as string, ready func(Ready) error) error {
	switch as {
	case "etcd":
		return Etcd(ctx, os.Getenv("DIR"), os.Stderr, ready)
	case "refuses":
		return errors.New("there is no room")
	case "dies":
		fmt.Fprintln(os.Stderr, "cannot go on")
		os.Exit(3)
	case "parent": // starts a part, says which, and ends without a word to it
		child, err := Start(ctx, Spec{
			Name: "child", Dir: os.Getenv("DIR"), Program: os.Args[0],
			Env: []string{role + "=waits"},
		})
		if err != nil {
			return err
		}
		if err := ready(Ready{Address: strconv.Itoa(child.PID())}); err != nil {
			return err
		}
		os.Exit(0)
	case "waits":
		if err := ready(Ready{}); err != nil {
			return err
		}
		<-ctx.Done()
	}
	return nil
}

func start(t *testing.T, as string) (*Part, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	dir := t.TempDir()
	p, err := Start(ctx, Spec{Name: as, Dir: dir, Program: os.Args[0], Env: []string{role + "=" + as, "DIR=" + dir}})
	if err == nil {
		t.Cleanup(func() { _ = p.Kill() })
	}
	return p, err
}

func TestEtcdIsAPart(t *testing.T) {
	p, err := start(t, "etcd")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	st, err := etcdstore.Open(ctx, etcdstore.Config{Endpoints: []string{p.Address}})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if _, err := st.Commit(ctx, store.Txn{Writes: []store.Write{store.Put("/a", []byte("1"))}}); err != nil {
		t.Fatal(err)
	}
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("a part that is paused is stopped: %v", err)
	}
	if conn, err := net.Dial("tcp", p.Address); err == nil {
		_ = conn.Close()
		t.Error("something listens at the part's address")
	}
}

func TestPartsThatDoNotComeUpSayWhy(t *testing.T) {
	for as, want := range map[string]string{"refuses": "there is no room", "dies": "cannot go on"} {
		if _, err := start(t, as); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", as, err)
		}
	}
}

func TestPartEndsWithItsParent(t *testing.T) {
	parent, err := start(t, "parent")
	if err != nil {
		t.Fatal(err)
	}
	<-parent.Ended()
	pid, err := strconv.Atoi(parent.Address)
	if err != nil {
		t.Fatal(err)
	}
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(limit)
	for runs(pid) {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("process %d outlives its parent", pid)
		}
	}
}

// runs reports whether a process is there and is no zombie.
func runs(pid int) bool {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadString('\n')
		if state, ok := strings.CutPrefix(line, "State:"); ok {
			return !strings.HasPrefix(strings.TrimSpace(state), "Z")
		}
		if err != nil {
			return !errors.Is(err, io.EOF)
		}
	}
}
