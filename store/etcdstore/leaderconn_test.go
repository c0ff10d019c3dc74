package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold/leasehold/store"
)

func TestChooseTheMemberThatRenewalsGoTo(t *testing.T) {
	status := func(member, leader, term uint64) *pb.StatusResponse {
		return &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: member}, Leader: leader, RaftTerm: term}
	}
	for _, c := range []struct {
		name    string
		answers []*pb.StatusResponse
		current int
		best    int
		leads   bool
	}{
		{"the leader", []*pb.StatusResponse{status(1, 2, 5), status(2, 2, 5), status(3, 2, 5)}, 0, 1, true},
		{
			"one that was deposed while frozen",
			[]*pb.StatusResponse{status(1, 1, 4), status(2, 3, 5), status(3, 3, 5)},
			0, 2, true,
		},
		{
			"deposed, and the new leader is not among the endpoints",
			[]*pb.StatusResponse{status(1, 1, 4), status(2, 3, 5)},
			1, 1, false,
		},
		{"no leader: stay", []*pb.StatusResponse{status(1, 0, 5), status(2, 0, 5)}, 1, 1, false},
		{
			"no leader and the current one is silent",
			[]*pb.StatusResponse{nil, status(2, 9, 5), status(3, 9, 5)},
			0, 1,
			false,
		},
		{"no member answers", []*pb.StatusResponse{nil, nil}, 0, -1, false},
	} {
		if best, leads := choose(c.answers, c.current); best != c.best || leads != c.leads {
			t.Errorf("%s: chose %d, leads %t; want %d, %t", c.name, best, leads, c.best, c.leads)
		}
	}
}

// Where one of several new members cannot be dialled, what was dialled before it is closed, and
// everything else stays as it was.
func TestAMemberThatCannotBeDialledLeavesNothingOpen(t *testing.T) {
	var opened []*grpc.ClientConn
	refused := errors.New("no such address")
	dial := func(endpoint string) (*grpc.ClientConn, error) {
		if endpoint == "bad" {
			return nil, refused
		}
		conn, err := grpc.NewClient("passthrough:"+endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
		opened = append(opened, conn)
		return conn, err
	}
	l := &leaderConn{kick: make(chan struct{}, 1)}
	if err := l.use(dial, []string{"a"}); err != nil {
		t.Fatal(err)
	}
	if err := l.use(dial, []string{"a", "b", "bad"}); !errors.Is(err, refused) {
		t.Errorf("use: %v", err)
	}
	if len(opened) != 2 || opened[0].GetState() == connectivity.Shutdown ||
		opened[1].GetState() != connectivity.Shutdown || len(l.members) != 1 || l.current().endpoint != "a" {
		t.Errorf("opened are %d, members %v", len(opened), l.members)
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
}

// cluster is three members in this process.
type cluster struct {
	members  []*embed.Etcd
	services []chan *grpc.Server // of each member, when it has one
}

// startCluster starts three members, each of which listens for clients and for peers.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	var err error
	for range 5 { // another process may take a port between finding and using it
		c := &cluster{}
		if err = c.start(t); err == nil {
			t.Cleanup(func() {
				for i := range c.members {
					c.stop(i)
				}
			})
			return c
		}
	}
	t.Fatal(err)
	return nil
}

func (c *cluster) start(t *testing.T) error {
	t.Helper()
	ports := freePorts(t, 6)
	at := func(port int) url.URL { return url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)} }
	var initial []string
	for i := range 3 {
		peer := at(ports[i])
		initial = append(initial, fmt.Sprintf("m%d=%s", i, peer.String()))
	}
	for i := range 3 {
		e := embed.NewConfig()
		e.Name = fmt.Sprintf("m%d", i)
		e.Dir = t.TempDir()
		e.ListenPeerUrls, e.AdvertisePeerUrls = []url.URL{at(ports[i])}, []url.URL{at(ports[i])}
		e.ListenClientUrls, e.AdvertiseClientUrls = []url.URL{at(ports[3+i])}, []url.URL{at(ports[3+i])}
		e.InitialCluster = strings.Join(initial, ",")
		e.UnsafeNoFsync = true
		e.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
		service := make(chan *grpc.Server, 1)
		e.ServiceRegister = func(g *grpc.Server) { service <- g }
		c.services = append(c.services, service)
		member, err := embed.StartEtcd(e)
		if err != nil {
			for j := range c.members {
				c.stop(j)
			}
			return err
		}
		c.members = append(c.members, member)
	}
	for _, m := range c.members {
		select {
		case <-m.Server.ReadyNotify():
		case <-time.After(limit):
			return errors.New("the cluster does not come up")
		}
	}
	return nil
}

func (c *cluster) stop(i int) {
	if c.members[i] == nil {
		return
	}
	select {
	case g := <-c.services[i]: // else closing would wait for streams that never end
		g.Stop()
	default:
	}
	c.members[i].Close()
	c.members[i] = nil
}

// leader returns the member that the running ones agree leads.
func (c *cluster) leader(t *testing.T) int {
	t.Helper()
	leader := -1
	eventually(t, "the members agree on a leader", func() bool {
		leader = -1
		for _, m := range c.members {
			if m == nil {
				continue
			}
			of := slices.IndexFunc(c.members,
				func(o *embed.Etcd) bool { return o != nil && o.Server.MemberID() == m.Server.Leader() })
			if of < 0 || leader >= 0 && leader != of {
				return false
			}
			leader = of
		}
		return true
	})
	return leader
}

func (c *cluster) endpoint(i int) string { return c.members[i].Clients[0].Addr().String() }

func freePorts(t *testing.T, n int) []int {
	t.Helper()
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // only when all are found, so that they differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

func TestRenewalsStayWithTheLeader(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*limit)
	defer cancel()
	c := startCluster(t)
	var endpoints []string
	var proxies []*proxy
	for i := range c.members {
		proxies = append(proxies, startProxy(t, c.endpoint(i)))
		endpoints = append(endpoints, proxies[i].address())
	}
	s := openStore(t, Config{Endpoints: endpoints, LeaderCheck: 100 * time.Millisecond, RenewStall: time.Second})
	l := grant(ctx, t, s, 10*limit)
	renewsAt := func(want string) {
		t.Helper()
		eventually(t, "renewals go to the leader "+want, func() bool {
			_, err := s.Renew(ctx, l.ID)
			if err != nil && !errors.Is(err, store.ErrUnavailable) {
				t.Fatal(err)
			}
			return err == nil && s.renewer.leader.current().endpoint == want
		})
	}
	first := c.leader(t)
	renewsAt(endpoints[first])

	// The leader hands over: renewals follow.
	second := (first + 1) % 3
	eventually(t, "leadership has moved", func() bool {
		_ = c.members[first].Server.MoveLeader(ctx, uint64(c.members[first].Server.MemberID()),
			uint64(c.members[second].Server.MemberID()))
		return c.leader(t) == second
	})
	renewsAt(endpoints[second])

	// The leader is there, but not for us: any other member will do until it answers again.
	proxies[second].freeze(toServer, toClient)
	eventually(t, "renewed through another member", func() bool {
		short, stop := context.WithTimeout(ctx, 5*time.Second)
		defer stop()
		_, err := s.Renew(short, l.ID)
		return err == nil && s.renewer.leader.current().endpoint != endpoints[second]
	})
	proxies[second].thaw()
	renewsAt(endpoints[second])

	// The leader goes away.
	c.stop(second)
	third := c.leader(t)
	renewsAt(endpoints[third])

	// A store that knows followers alone makes do with them.
	follower := 3 - second - third
	f := openStore(t, Config{Endpoints: []string{endpoints[follower]}})
	eventually(t, "renewed through a follower", func() bool { _, err := f.Renew(ctx, l.ID); return err == nil })

	// It learns of the leader, and renewals go there; when it learns of the follower alone, it goes
	// back.
	for _, at := range []int{third, follower} {
		if err := f.Use([]string{endpoints[at]}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "renewed through the only endpoint there is", func() bool {
			_, err := f.Renew(ctx, l.ID)
			return err == nil && f.renewer.leader.current().endpoint == endpoints[at]
		})
		if _, err := f.Get(ctx, "/none"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a read: %v", err)
		}
	}
	if err := f.Use(nil); err == nil {
		t.Error("no endpoint is no error")
	}

	v, err := f.Vitals(ctx)
	if err != nil || v.Leader != uint64(c.members[third].Server.MemberID()) ||
		v.Cluster != uint64(c.members[third].Server.Cluster().ID()) {
		t.Errorf("vitals %+v, %v", v, err)
	}
}
