package etcdstore

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/leasehold/leasehold/store"
)

// memberTimeout is how long a member may take to answer.
const memberTimeout = 2 * time.Second

// answer is what one address answered.
type answer struct {
	member store.Member
	id     uint64 // 0: it did not answer
	list   []*pb.Member
	auth   bool // authentication is on
}

// AskMembers asks each endpoint, and each other member of the cluster at its address in the
// cluster's list, for its state. It needs no right and no quorum. Members that do not answer are in
// the result; if all are reached through loopback, as through a tunnel, the others are not asked.
func AskMembers(ctx context.Context, cfg Config) (store.Members, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return store.Members{}, err
	}
	cfg.Username, cfg.Password = "", "" // a login takes etcd long, and nothing here needs it
	answers := askAll(ctx, cfg, cfg.Endpoints)
	var members store.Members
	if cfg.TLS != nil && len(cfg.TLS.Certificates) > 0 && cfg.TLS.Certificates[0].Leaf != nil {
		members.CertificateEnds = cfg.TLS.Certificates[0].Leaf.NotAfter
	}
	var list []*pb.Member
	seen := map[uint64]bool{}
	authentication := false
	for _, a := range answers {
		if a.id != 0 && seen[a.id] {
			continue // another address of the same member
		}
		seen[a.id] = true
		if list == nil {
			list = a.list
		}
		authentication = authentication || a.auth || a.id == 0
		members.All = append(members.All, a.member)
	}
	members.NoAuthentication = !authentication
	local := !slices.ContainsFunc(cfg.Endpoints, func(e string) bool { return !loopback(e) })
	var others []string
	names := map[string]string{}
	for _, m := range list {
		if seen[m.ID] || len(m.ClientURLs) == 0 || local && !loopback(m.ClientURLs[0]) {
			continue
		}
		address := m.ClientURLs[0]
		if i := slices.IndexFunc(members.All, func(known store.Member) bool {
			return slices.ContainsFunc(m.ClientURLs, func(u string) bool { return host(u) == host(known.Address) })
		}); i >= 0 {
			members.All[i].Name = m.Name
			continue
		}
		others, names[address] = append(others, address), m.Name
	}
	for _, a := range askAll(ctx, cfg, others) {
		if a.member.Name == "" {
			a.member.Name = names[a.member.Address]
		}
		members.All = append(members.All, a.member)
	}
	return members, ctx.Err()
}

// askAll asks addresses at the same time, and returns the answers in their order.
func askAll(ctx context.Context, cfg Config, addresses []string) []answer {
	answers := make([]answer, len(addresses))
	var asking sync.WaitGroup
	for i, address := range addresses {
		asking.Go(func() { answers[i] = ask(ctx, cfg, address) })
	}
	asking.Wait()
	return answers
}

func ask(ctx context.Context, cfg Config, address string) answer {
	a := answer{member: store.Member{Address: address, Remote: !loopback(address), Plain: cfg.TLS == nil}}
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	cfg.Endpoints = []string{address}
	var ends time.Time
	var mu sync.Mutex // the client may shake hands again
	if cfg.TLS != nil {
		cfg.TLS = cfg.TLS.Clone()
		cfg.TLS.VerifyConnection = func(state tls.ConnectionState) error {
			mu.Lock()
			defer mu.Unlock()
			ends = state.PeerCertificates[0].NotAfter
			return nil
		}
	}
	s := &Store{cfg: cfg, ctx: ctx}
	client, err := s.newClient(ctx)
	if err != nil {
		a.member.Down = reason(err)
		return a
	}
	defer func() { _ = closeClient(client) }()
	st, err := pb.NewMaintenanceClient(client.ActiveConnection()).Status(ctx, &pb.StatusRequest{},
		grpc.WaitForReady(false))
	if err != nil {
		a.member.Down = reason(err)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			a.member.Down = "no answer in " + memberTimeout.String()
		}
		return a
	}
	mu.Lock()
	a.member.CertificateEnds = ends
	mu.Unlock()
	a.id = st.Header.MemberId
	a.member.Version, a.member.Learner, a.member.NoLeader = st.Version, st.IsLearner, st.Leader == 0
	a.member.Size, a.member.Used, a.member.Quota = st.DbSize, st.DbSizeInUse, st.DbSizeQuota
	for _, e := range st.Errors {
		a.member.Full = a.member.Full || strings.Contains(e, "NOSPACE")
		a.member.Corrupt = a.member.Corrupt || strings.Contains(e, "CORRUPT")
	}
	if l, err := client.MemberList(ctx, clientv3.WithSerializable()); err == nil {
		a.list = l.Members
		if i := slices.IndexFunc(l.Members, func(m *pb.Member) bool { return m.ID == a.id }); i >= 0 {
			a.member.Name = l.Members[i].Name
		}
	}
	a.auth = true
	if !a.member.NoLeader { // it takes a quorum to answer that
		if auth, err := client.AuthStatus(ctx); err == nil {
			a.auth = auth.Enabled
		}
	}
	return a
}

// host returns an endpoint without its scheme.
func host(endpoint string) string {
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
		return u.Host
	}
	return endpoint
}

// loopback reports whether an endpoint is on this machine.
func loopback(endpoint string) bool {
	if strings.HasPrefix(endpoint, "unix:") {
		return true
	}
	name, _, err := net.SplitHostPort(host(endpoint))
	if err != nil {
		return false
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}
