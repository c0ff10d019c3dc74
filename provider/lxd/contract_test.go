package lxd

import (
	"fmt"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/lxd/lxdtest"
	"github.com/leasehold/leasehold/provider/providertest"
	"github.com/leasehold/leasehold/provider/suite"
	"github.com/leasehold/leasehold/tests/tier"
)

// atOnce is how many tests run at the same time: nearly all of their time they wait for LXD.
const atOnce = "6"

func TestMain(m *testing.M) {
	tier.AtOnce(atOnce)
	goleak.VerifyTestMain(m)
}

// startReal starts an LXD with an image.
func startReal(t *testing.T) *lxdtest.LXD {
	t.Helper()
	l, err := lxdtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	})
	file, err := lxdtest.BuildInit(t.TempDir())
	if err == nil {
		err = l.Import("tiny", map[string]string{"/sbin/init": file})
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func onReal(t *testing.T, l *lxdtest.LXD, change func(*Config)) *Provider {
	t.Helper()
	c := Config{
		Socket: l.Socket(), Pool: lxdtest.Pool, Profiles: []string{}, Image: "tiny", CallTimeout: "1m",
	}
	if change != nil {
		change(&c)
	}
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.client.http.CloseIdleConnections)
	return p
}

// proves PROV-1
func TestOnARealLXD(t *testing.T) {
	l := startReal(t)
	t.Run("contract", func(t *testing.T) {
		t.Parallel()
		p := onReal(t, l, nil)
		h := providertest.Harness{
			Open: func() (provider.Provider, error) { return p, nil },
			Poll: 100 * time.Millisecond,
			Kill: func(m provider.Machine) error {
				pid, err := l.InitPID(m.Ref)
				if err != nil {
					return err
				}
				return syscall.Kill(pid, syscall.SIGKILL)
			},
			Remains: func(m provider.Machine) string {
				var all []string
				if err := l.Do(http.MethodGet, "/1.0/instances?recursion=0", nil, &all); err != nil {
					return err.Error()
				}
				for _, u := range all {
					if nameIn(u) == m.Ref {
						return "container " + m.Ref
					}
				}
				if dir := l.Dir + "/storage-pools/" + lxdtest.Pool + "/containers/" + m.Ref; exists(dir) {
					return "directory " + dir
				}
				return ""
			},
			Print: func(m provider.Machine, text string) error {
				pid, err := l.InitPID(m.Ref)
				if err != nil {
					return err
				}
				console, err := os.OpenFile(fmt.Sprintf("/proc/%d/root/dev/console", pid), os.O_WRONLY|syscall.O_NOCTTY, 0)
				if err != nil {
					return err
				}
				defer console.Close()
				_, err = console.WriteString(text)
				return err
			},
		}
		for _, promise := range suite.Promises() {
			t.Run(promise, func(t *testing.T) {
				t.Parallel()
				providertest.Play(t, "lxd", h, promise)
			})
		}
	})
	t.Run("apart", func(t *testing.T) {
		t.Parallel()
		for name, test := range map[string]func(*testing.T, *lxdtest.LXD){
			"crashes": crashes, "replicas at once": replicasAtOnce, "strangers": strangers, "foreign boots": foreignBoots,
			"frozen": frozen, "ends in order": endsInOrder, "delete cuts short": deleteCutsShort, "refusals": refusals,
			"over HTTPS": overHTTPS, "addresses": addresses, "reboots": reboots, "answers": answers,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, l)
			})
		}
	})
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
