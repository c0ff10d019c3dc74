package xdsserver_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold/leasehold/coordinator/access"
	"github.com/leasehold/leasehold/store"
)

// subscriber follows the endpoints of one group on a stream.
type subscriber struct {
	group string
	got   chan map[string]bool // the addresses that each answer names
}

// subscribe follows a group until ctx ends, and confirms each answer as clients do.
func subscribe(ctx context.Context, conn *grpc.ClientConn, group string, running *sync.WaitGroup) (*subscriber, error) {
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		return nil, err
	}
	ask := &discoveryv3.DiscoveryRequest{TypeUrl: resource.EndpointType, ResourceNames: []string{group}}
	if err := stream.Send(ask); err != nil {
		return nil, err
	}
	s := &subscriber{group: group, got: make(chan map[string]bool, 64)}
	running.Go(func() {
		for {
			answer, err := stream.Recv()
			if err != nil {
				return
			}
			all := map[string]bool{}
			for _, packed := range answer.Resources {
				var is endpoint.ClusterLoadAssignment
				if packed.UnmarshalTo(&is) != nil {
					continue
				}
				for _, zone := range is.Endpoints {
					for _, e := range zone.LbEndpoints {
						all[e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress()] = true
					}
				}
			}
			select {
			case s.got <- all:
			case <-ctx.Done():
				return
			}
			ask.VersionInfo, ask.ResponseNonce = answer.VersionInfo, answer.Nonce
			if stream.Send(ask) != nil {
				return
			}
		}
	})
	return s, nil
}

// proves LB-4: a change goes to the subscribers of its group, and to no other
func TestChangesGoToTheirGroupAlone(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0", access.Config{})
	s.put("web-0", "web", "a", "10.0.0.1:80", store.Running)
	s.put("db-0", "db", "a", "10.1.0.1:80", store.Running)
	for !s.server.IsReady() { // these subscribers do not try again
		<-time.After(time.Millisecond)
	}
	conn, err := grpc.NewClient(s.server.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	next := func(sub *subscriber) map[string]bool {
		select {
		case all := <-sub.got:
			return all
		case <-time.After(longest):
			t.Fatalf("no answer about %s", sub.group)
			return nil
		}
	}
	var web, db *subscriber
	for group, to := range map[string]**subscriber{"web": &web, "db": &db} {
		if *to, err = subscribe(ctx, conn, group, &running); err != nil {
			t.Fatal(err)
		}
	}
	for !next(web)["10.0.0.1"] {
	}
	for !next(db)["10.1.0.1"] {
	}
	for i := 2; i < 7; i++ {
		s.put("web-0", "web", "a", fmt.Sprintf("10.0.0.%d:80", i), store.Running)
		for !next(web)[fmt.Sprintf("10.0.0.%d", i)] {
		}
	}
	s.put("db-0", "db", "a", "10.1.0.2:80", store.Running)
	if all := next(db); !all["10.1.0.2"] { // an answer for web's changes would have come before
		t.Errorf("db's subscriber was told %v", all)
	}
}

// BenchmarkFanOut is how long a change of one of 10,000 instances in 100 groups takes from the
// write of its record until the last of its subscribers, of a thousand in all, has decoded it.
func BenchmarkFanOut(b *testing.B) {
	const groups, size, subscribers, perConnection = 100, 100, 1000, 16
	for _, spread := range []struct {
		name   string
		groups int // that have subscribers
	}{{"10 subscribers of each group", groups}, {"1000 of one group", 1}} {
		b.Run(spread.name, func(b *testing.B) {
			s := serve(b, "127.0.0.1:0", access.Config{})
			address := func(g, i, version int) string { return fmt.Sprintf("10.%d.%d.%d", g, i, version) }
			put := func(g, i, version int) store.Write {
				id := fmt.Sprintf("g%d-%d", g, i)
				return store.Put(keys.Instance(id), store.Encode(store.Instance{
					Schema: 1, ID: id, Group: fmt.Sprintf("g%d", g), Zone: string(rune('a' + i%3)),
					Address: address(g, i, version) + ":80", Phase: store.Running,
				}))
			}
			for g := range groups {
				var writes []store.Write
				for i := range size {
					writes = append(writes, put(g, i, 0))
				}
				s.commit(writes...)
			}
			for !s.server.IsReady() {
				<-time.After(time.Millisecond)
			}
			ctx, cancel := context.WithCancel(b.Context())
			var running sync.WaitGroup
			defer running.Wait()
			defer cancel()
			var all []*subscriber
			var conn *grpc.ClientConn
			for n := range subscribers {
				var err error
				if n%perConnection == 0 {
					conn, err = grpc.NewClient(s.server.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
					if err != nil {
						b.Fatal(err)
					}
					defer conn.Close()
				}
				sub, err := subscribe(ctx, conn, fmt.Sprintf("g%d", n%spread.groups), &running)
				if err != nil {
					b.Fatal(err)
				}
				all = append(all, sub)
			}
			await := func(g int, address string) {
				for n := g; n < subscribers; n += spread.groups {
					for told := false; !told; {
						select {
						case is := <-all[n].got:
							told = is[address]
						case <-time.After(longest):
							b.Fatalf("subscriber %d was not told of %s", n, address)
						}
					}
				}
			}
			for g := range spread.groups {
				await(g, address(g, size-1, 0))
			}
			var times []time.Duration
			for n := 0; b.Loop(); n++ {
				g, i, version := n%spread.groups, n/spread.groups%size, 1+n/spread.groups/size%250
				began := time.Now()
				s.commit(put(g, i, version))
				await(g, address(g, i, version))
				times = append(times, time.Since(began))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(times[len(times)-1].Microseconds())/1000, "max-ms")
		})
	}
}
