package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/cmd/server/membership"
	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/store"
)

// joinMethod is the RPC by which a host joins, on the agents' port of any replica. Its messages are
// JSON.
const (
	joinService = "leasehold.server.v1.Hosts"
	joinMethod  = "/" + joinService + "/Join"
)

// joinCall is the request of a joining host.
type joinCall struct {
	Token   string   `json:"token"` // the secret part of the token
	Name    string   `json:"name"`
	Hosts   []string `json:"hosts"`   // names and addresses for its certificate
	Peer    string   `json:"peer"`    // URL for other members
	Request []byte   `json:"request"` // certificate request for its key
}

// joinAnswer is the answer to a joinCall.
type joinAnswer struct {
	Certificate []byte            `json:"certificate"` // certificate of its member, as PEM
	Files       map[string][]byte `json:"files"`       // files that all hosts have
	Shard       string            `json:"shard"`
	Restore     bool              `json:"restore,omitempty"` // it comes from a backup
	Cluster     string            `json:"cluster"`
	Members     []Peer            `json:"members"`
}

// joinTime bounds a join on the host that admits.
const joinTime = 10 * time.Second

// admission lets hosts in.
type admission struct {
	place Place
	store store.Store // the replica's port
	log   *slog.Logger
	limit chan struct{} // capacity 1: hosts join one after the other
}

// register adds the call to the agents' port.
func (a *admission) register(to grpc.ServiceRegistrar) {
	to.RegisterService(&grpc.ServiceDesc{
		ServiceName: joinService,
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: "Join",
			Handler: func(_ any, ctx context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				in := new(wrapperspb.BytesValue)
				if err := read(in); err != nil {
					return nil, err
				}
				return a.answer(ctx, in.GetValue())
			},
		}},
	}, a)
}

// answer answers a call. Without a valid token it says nothing of the cluster.
func (a *admission) answer(ctx context.Context, text []byte) (*wrapperspb.BytesValue, error) {
	var call joinCall
	if err := json.Unmarshal(text, &call); err != nil || !identity.IsName(call.Name) || len(call.Hosts) > 8 ||
		call.Token == "" {
		return nil, status.Error(codes.InvalidArgument, "the call is malformed")
	}
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	answer, err := a.admit(ctx, call)
	var refused *membership.Refusal
	switch {
	case errors.Is(err, errToken):
		a.log.Warn("host refused", "host", call.Name, "why", err)
		return nil, status.Error(codes.PermissionDenied, errToken.Error())
	case errors.As(err, &refused) && refused.Busy:
		a.log.Info("host waits", "host", call.Name, "why", refused.What)
		return nil, status.Error(codes.Aborted, refused.What+"\n"+refused.Next)
	case errors.As(err, &refused):
		a.log.Warn("host refused", "host", call.Name, "why", refused.What)
		return nil, status.Error(codes.FailedPrecondition, refused.What+"\n"+refused.Next)
	case err != nil:
		a.log.Warn("host could not join", "host", call.Name, "error", err)
		return nil, status.Error(codes.Unavailable, "this replica cannot let a host join now")
	}
	out, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	a.log.Info("host admitted", "host", call.Name, "peer", call.Peer)
	return wrapperspb.Bytes(out), nil
}

// admit checks the token, and whether the cluster can take another member, before it uses up the
// token. A call without a valid token neither waits for another call nor delays one, and opens no
// connection to etcd.
func (a *admission) admit(ctx context.Context, call joinCall) (answer joinAnswer, err error) {
	r, err := a.place.load()
	if err != nil {
		return answer, err
	}
	key := store.KeysOf(r.Shard).Host(store.TokenHash(call.Token))
	if _, err := a.store.Get(ctx, key); errors.Is(err, store.ErrNotFound) {
		return answer, errToken
	} else if err != nil {
		return answer, err
	}
	select {
	case a.limit <- struct{}{}:
		defer func() { <-a.limit }()
	case <-ctx.Done():
		return answer, fmt.Errorf("wait for another host that joins: %w", ctx.Err())
	}
	admin, err := a.place.admin(ctx, r)
	if err != nil {
		return answer, err
	}
	defer admin.Close()
	cluster, err := admin.Cluster(ctx)
	if err != nil {
		return answer, err
	}
	if no := cluster.MayAdd(call.Name, call.Peer); no != nil {
		return answer, no
	}
	answer = joinAnswer{Shard: r.Shard, Restore: r.Restore, Cluster: r.Cluster, Members: peersOf(cluster)}
	if answer.Certificate, err = pki.SignOperator(a.place.credentials().Dir, call.Request,
		pki.Order{Name: services.EtcdName, Hosts: call.Hosts}); err != nil {
		return answer, err
	}
	if answer.Files, err = a.place.readShared(); err != nil {
		return answer, err
	}
	return answer, redeem(ctx, a.store, r.Shard, call.Token, call.Name, call.Request)
}

// peersOf returns the members that have started.
func peersOf(c membership.Cluster) []Peer {
	var out []Peer
	for _, m := range c {
		if m.Name != "" {
			out = append(out, Peer{Name: m.Name, Peer: m.Peer, Client: m.Client})
		}
	}
	return out
}
