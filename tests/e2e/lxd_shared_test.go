package e2e

import (
	"errors"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/provider/lxd/lxdtest"
)

// sharedLXD is the LXD of the tests that need one. Only one can run on a host, so that tests share
// it instead of waiting for each other.
var sharedLXD struct {
	sync.Mutex
	users int
	lxd   *lxdtest.LXD
}

// useLXD returns the LXD that tests share, with the images "agent", whose first process is the
// agent, and "tiny", whose first process waits. Both have a program /bin/wait.
func useLXD(t *testing.T) *lxdtest.LXD {
	t.Helper()
	s := &sharedLXD
	s.Lock()
	defer s.Unlock()
	if s.users == 0 {
		l, err := startLXD(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		s.lxd = l
	}
	s.users++
	t.Cleanup(func() {
		s.Lock()
		defer s.Unlock()
		if s.users--; s.users > 0 {
			return
		}
		if err := s.lxd.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s.lxd
}

func startLXD(dir string) (*lxdtest.LXD, error) {
	wait, err := lxdtest.BuildInit(dir)
	if err != nil {
		return nil, err
	}
	l, err := lxdtest.Start()
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		l.Import("agent", map[string]string{"/sbin/init": bin("leasehold-agent"), "/bin/wait": wait}),
		l.Import("tiny", map[string]string{"/sbin/init": wait, "/bin/wait": wait}),
	)
	if err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return l, nil
}
