package etcdops

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/goleak"
)

// asMember holds, in the environment of a process that a test starts, what member of an etcd it is
// to be.
const asMember = "ETCDOPS_TEST_MEMBER"

// role is what member of an etcd a process is to be.
type role struct {
	Data
	Client, Cluster, State string
}

func TestMain(m *testing.M) {
	if text := os.Getenv(asMember); text != "" {
		if err := serve(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// serve is a member that ends when its parent has ended.
func serve(text string) error {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	peer, err := url.Parse(r.Peer)
	if err != nil {
		return err
	}
	conf := embed.NewConfig()
	conf.Name, conf.Dir, conf.InitialCluster, conf.ClusterState = r.Name, r.Dir, r.Cluster, r.State
	conf.ListenPeerUrls = []url.URL{*peer}
	conf.AdvertisePeerUrls = conf.ListenPeerUrls
	conf.ListenClientUrls = []url.URL{{Scheme: "http", Host: r.Client}}
	conf.AdvertiseClientUrls = conf.ListenClientUrls
	conf.UnsafeNoFsync = true
	conf.LogLevel, conf.LogOutputs = "error", []string{"stderr"}
	etcd, err := embed.StartEtcd(conf)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // nothing comes: it ends
		os.Exit(0)
	}()
	return <-etcd.Err()
}

// process is a member that runs.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

func launch(r role) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self)}
	p.cmd.Env = append(os.Environ(), asMember+"="+string(text))
	p.cmd.Stderr = os.Stderr
	p.cmd.WaitDelay = time.Second
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return p, p.cmd.Start()
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()         // as killed
}
