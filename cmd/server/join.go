package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/provider/durable"
	"github.com/leasehold/leasehold/store/etcdstore"
)

// join has another host admit this one. Until the record is written every step can be repeated: the
// host's key is on disk before the request is sent.
func (p Place) join(ctx context.Context, r Record, at, text string, log *slog.Logger) error {
	t, err := parseToken(text)
	if err != nil {
		return err
	}
	if _, _, err := net.SplitHostPort(at); err != nil {
		return problem("leasehold server --name b --join a:7420 --token TOKEN",
			"--join: %q: must be HOST:PORT of a host of the cluster", at)
	}
	key, err := p.hostKey()
	if err != nil {
		return err
	}
	request, err := identity.NewRequest(key)
	if err != nil {
		return err
	}
	var answer joinAnswer
	err = afterOthers(ctx, log, func() (err error) {
		answer, err = ask(ctx, at, t, joinCall{
			Token: t.secret, Name: r.Name, Hosts: r.hosts(), Peer: r.self().Peer, Request: request,
		})
		return err
	})
	if err != nil {
		return err
	}
	for name, content := range answer.Files {
		if !slices.Contains(shared, name) {
			return fmt.Errorf("join: the answer has a file %q", name)
		}
		mode := os.FileMode(0o644)
		if strings.HasSuffix(name, ".key") {
			mode = 0o600
		}
		if err := os.MkdirAll(filepath.Dir(p.file(name)), 0o700); err != nil {
			return err
		}
		if err := durable.Replace(p.file(name), content, mode); err != nil {
			return err
		}
	}
	if err := pki.Take(p.credentials().Dir, services.EtcdName, answer.Certificate, key); err != nil {
		return err
	}
	r.Phase, r.Shard, r.Cluster, r.Members = joining, answer.Shard, answer.Cluster, answer.Members
	r.Restore = answer.Restore
	return p.save(r)
}

// hostKey returns the key of this host's member. The first attempt creates it.
func (p Place) hostKey() (*ecdsa.PrivateKey, error) {
	file := p.file("host.key")
	if text, err := os.ReadFile(file); err == nil {
		block, _ := pem.Decode(text)
		if block != nil {
			if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
				return key, nil
			}
		}
	}
	key, err := identity.NewKey()
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, durable.Replace(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

// ask calls a replica. It sends nothing unless the replica proves the authority that the token
// names.
func ask(ctx context.Context, at string, t token, call joinCall) (answer joinAnswer, err error) {
	text, err := json.Marshal(call)
	if err != nil {
		return answer, err
	}
	there, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", at) // more specific
	if err != nil {
		return answer, problem("see that leasehold server runs there and that the port is open, then the same command again",
			"--join: %s", err)
	}
	_ = there.Close()
	var foreign atomic.Bool // gRPC passes the error on as text only
	conn, err := grpc.NewClient("passthrough:///"+at, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
		InsecureSkipVerify: true, //nolint:gosec // the token names the authority; VerifyConnection checks all of it
		VerifyConnection: func(s tls.ConnectionState) error {
			err := verify(s, t.authority)
			foreign.Store(err != nil)
			return err
		},
	})))
	if err != nil {
		return answer, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, joinTime+5*time.Second)
	defer cancel()
	out := new(wrapperspb.BytesValue)
	err = conn.Invoke(ctx, joinMethod, wrapperspb.Bytes(text), out)
	said := status.Convert(err)
	switch {
	case err == nil:
		return answer, json.Unmarshal(out.GetValue(), &answer)
	case foreign.Load():
		return answer, problem("give the address of a host of the cluster that made the token", "--join: %s: %s", at,
			errAuthority)
	case said.Code() == codes.PermissionDenied:
		return answer,
			problem("leasehold server token, on a host of the cluster, makes another", "--token: %s", said.Message())
	case said.Code() == codes.Aborted:
		what, next, _ := strings.Cut(said.Message(), "\n")
		return answer, &busyError{what, next}
	case said.Code() == codes.FailedPrecondition:
		what, next, _ := strings.Cut(said.Message(), "\n")
		return answer, problem(next, "%s refuses this host: %s", at, what)
	case said.Code() == codes.Unimplemented:
		return answer, problem("give the address of a host that runs leasehold server",
			"--join: %s: a coordinator without leasehold server answers there", at)
	default:
		return answer,
			problem("the log of that host says why; then the same command again", "--join: %s: %s", at, said.Message())
	}
}

var errAuthority = errors.New("the server there does not belong to the cluster that made the token")

// verify checks that the peer is a coordinator of the pinned authority.
func verify(s tls.ConnectionState, authority string) error {
	chain := s.PeerCertificates
	root := chain[len(chain)-1]
	if identity.Fingerprint(root) != authority || len(chain) < 2 {
		return errAuthority
	}
	trust := identity.Trust{Authorities: []*x509.Certificate{root}}
	if _, err := trust.Verify(chain, x509.ExtKeyUsageServerAuth, "", time.Now()); err != nil {
		return fmt.Errorf("%w: %w", errAuthority, err)
	}
	if who, err := identity.Of(chain[0]); err != nil || who.Role != identity.Coordinator {
		return errAuthority
	}
	return nil
}

// becomeLearner adds this host's member to the cluster as a learner, before the member starts for
// the first time. It waits while another host joins.
func (p Place) becomeLearner(ctx context.Context, r Record, log *slog.Logger) (now Record, err error) {
	err = afterOthers(ctx, log, func() (err error) {
		now, err = p.tryLearner(ctx, r)
		return err
	})
	return now, err
}

func (p Place) tryLearner(ctx context.Context, r Record) (Record, error) {
	admin, err := p.admin(ctx, r)
	if err != nil {
		return r, err
	}
	defer admin.Close()
	cluster, err := admin.Cluster(ctx)
	if err != nil {
		return r, err
	}
	if m, there := cluster.At(r.self().Peer); !there || m.Name != "" {
		switch no := cluster.MayAdd(r.Name, r.self().Peer); {
		case no == nil:
		case no.Busy:
			return r, &busyError{no.What, no.Next}
		default:
			return r, refusal(no)
		}
		if err := settled(ctx, func() error {
			_, err := admin.members.AddLearner(ctx, r.self().Peer)
			return err
		}); err != nil {
			return r, err
		}
	}
	r.Members = peersOf(cluster)
	return r, p.save(r)
}

// settled retries a membership change while etcd requires its members to have been connected for
// longer.
func settled(ctx context.Context, change func() error) error {
	for try := 0; ; try++ {
		err := change()
		if !errors.Is(err, etcdstore.ErrUnsettled) || try == 30 {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(time.Second):
		}
	}
}

// errRemoved means that an operator has removed this host from the cluster.
var errRemoved = errors.New("removed from the cluster")

// promote makes this host's member a voting one once it has caught up. Any obstacle may pass, so it
// retries until this host is removed. waits receives each new reason once.
func (p Place) promote(ctx context.Context, r Record, waits func(why string)) error {
	last := ""
	for {
		err := p.tryPromote(ctx, r)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errRemoved):
			return p.removed(r)
		case err.Error() != last:
			last = err.Error()
			waits(last)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func (p Place) tryPromote(ctx context.Context, r Record) error {
	limited, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	admin, err := p.admin(limited, r)
	if err != nil {
		return err
	}
	defer admin.Close()
	cluster, err := admin.Cluster(limited)
	if err != nil {
		return err
	}
	m, there := cluster.At(r.self().Peer)
	switch {
	case !there:
		return errRemoved
	case !m.Learner:
		return nil
	}
	m.Behind = false // etcd decides
	for i := range cluster {
		if cluster[i].ID == m.ID {
			cluster[i] = m
		}
	}
	if no := cluster.MayPromote(m.ID); no != nil {
		if hint := elsewhere(limited, r.Address); hint != "" && !m.Answers {
			no.What += ": " + hint
		}
		return refusal(no)
	}
	return admin.members.Promote(limited, m.ID)
}

// removed returns the error with which a removed host ends.
func (p Place) removed(r Record) error {
	return problem(fmt.Sprintf("to have it join again, remove %s and use a token: leasehold server add %s, on "+
		"another host", p.Dir, r.Name),
		"%s was removed from the cluster", r.Name)
}
