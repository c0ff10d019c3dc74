package trouble

import (
	"context"
	"fmt"
	"time"
)

var ofEtcd = []Kind{
	{
		Name: "member-killed", Weight: 3, Takes: []Part{Etcd}, Least: time.Second, Most: 10 * time.Second,
		Do: memberKilled,
	},
	{
		Name: "member-frozen", Weight: 4, Takes: []Part{Etcd}, Least: 2 * time.Second, Most: 14 * time.Second,
		Do: memberFrozen,
	},
	{
		Name: "member-stutters", Weight: 1, Takes: []Part{Etcd}, Least: 3 * time.Second, Most: 10 * time.Second,
		Do: memberStutters,
	},
	{
		Name: "quorum-lost", Weight: 2, Takes: []Part{Etcd}, Least: 2 * time.Second, Most: 15 * time.Second,
		Do: quorumLost,
	},
	{Name: "etcd-leader-moved", Weight: 2, Takes: []Part{Etcd}, Do: leaderMoved},
	{Name: "etcd-compacted", Weight: 2, Takes: []Part{History}, Do: compacted},
	{Name: "etcd-full", Weight: 2, Takes: []Part{Etcd}, Least: 2 * time.Second, Most: 10 * time.Second, Do: noSpace},
	{
		Name: "member-wiped", Weight: 1, Takes: []Part{Etcd}, Least: time.Second, Most: 4 * time.Second, On: Separate,
		Do: memberWiped,
	},
}

// member chooses a member, more often than not the leader.
func member(ctx context.Context, s *Site) (i int, what string) {
	if leads, err := s.Ops().Leader(ctx); err == nil && s.Chance(60) {
		return leads, fmt.Sprintf("m%d, which leads", leads)
	}
	i = s.IntN(s.MemberCount())
	return i, fmt.Sprintf("m%d", i)
}

func memberKilled(ctx context.Context, s *Site) (string, func() error, error) {
	i, what := member(ctx, s)
	s.Member(i).Kill()
	return what, func() error { return s.RaiseMember(i) }, nil
}

func memberFrozen(ctx context.Context, s *Site) (string, func() error, error) {
	i, what := member(ctx, s)
	p := s.Member(i)
	p.Freeze()
	return what, func() error { p.Thaw(); return nil }, nil
}

// memberStutters: a member gets a processor, or its disk, only now and then.
func memberStutters(ctx context.Context, s *Site) (string, func() error, error) {
	i, what := member(ctx, s)
	p := s.Member(i)
	still := s.between(200*time.Millisecond, 900*time.Millisecond)
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			p.Freeze()
			wait(ctx, still)
			p.Thaw()
			wait(ctx, 100*time.Millisecond)
		}
	}()
	return fmt.Sprintf("%s, %s at a time", what, still), func() error { stop(); <-done; p.Thaw(); return nil }, nil
}

func quorumLost(_ context.Context, s *Site) (string, func() error, error) {
	hit := s.Perm(s.MemberCount())[:2]
	if s.Chance(50) {
		for _, i := range hit {
			s.Member(i).Freeze()
		}
		return fmt.Sprintf("members %v frozen", hit), func() error {
			for _, i := range hit {
				s.Member(i).Thaw()
			}
			return nil
		}, nil
	}
	for _, i := range hit {
		s.Member(i).Kill()
	}
	return fmt.Sprintf("members %v killed", hit), func() error { return s.RaiseMembers(hit...) }, nil
}

func leaderMoved(ctx context.Context, s *Site) (string, func() error, error) {
	to := s.IntN(s.MemberCount())
	return fmt.Sprintf("to m%d", to), nil, s.Ops().MoveLeader(ctx, to)
}

func compacted(ctx context.Context, s *Site) (string, func() error, error) {
	_, err := s.Ops().Compact(ctx, 1)
	return "all that was", nil, err
}

func noSpace(ctx context.Context, s *Site) (string, func() error, error) {
	err := s.Ops().RaiseNoSpace(ctx, s.IntN(s.MemberCount()))
	return "it takes no writes", func() error { return s.Patiently(s.Ops().Disarm) }, err
}

func memberWiped(ctx context.Context, s *Site) (string, func() error, error) {
	i, what := member(ctx, s)
	err := s.WipeMember(ctx, i)
	return what, func() error { return s.RaiseMember(i) }, err
}
