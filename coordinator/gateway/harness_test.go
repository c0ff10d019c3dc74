package gateway_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/gateway"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

const (
	interval = 5 * time.Second
	leaseTTL = 17 * time.Second
	shardID  = "51a4d"
)

// world is a database with gateways on it, in a synctest bubble.
type world struct {
	t     *testing.T
	log   *slog.Logger
	db    *memstore.Database
	store *memstore.Store // the test's own
	keys  store.Keys
	ca    *testAuthority // nil: streams are not secured
	extra []grpc.ServerOption
}

// replica is a gateway with its own connection to the database, its own cache and its own agents'
// server.
type replica struct {
	*gateway.Gateway
	w      *world
	store  *memstore.Store
	pause  *pausing
	listen *bufconn.Listener
	server *grpc.Server
	end    context.CancelFunc
	parts  sync.WaitGroup

	own       *tls.Certificate // of the agents that call from now on; nil: they have none
	mu        sync.Mutex
	disturbed []string
	journal   []store.JournalEntry
}

func inWorld(t *testing.T, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
			db: memstore.New(memstore.Config{}), keys: store.KeysOf("test"),
		}
		w.store = w.db.Connect()
		defer w.db.Close()
		w.put(w.keys.Shard(), store.Encode(store.Shard{
			Schema: store.Schema, ID: shardID,
			Settings: store.DefaultShardSettings(),
		}))
		test(w)
	})
}

// serve starts a gateway. Every test that starts one must call stop: a goroutine that is left over
// keeps the bubble from ending.
func (w *world) serve(id string) *replica {
	w.t.Helper()
	return w.serveWith(id, func(*gateway.Deps) {})
}

// serveWith is serve, with other parts.
func (w *world) serveWith(id string, change func(*gateway.Deps)) *replica {
	w.t.Helper()
	w.put(w.keys.Replica(id), store.Encode(store.Replica{Schema: store.Schema, ID: id, Address: id}))
	r := &replica{w: w, store: w.db.Connect(), listen: bufconn.Listen(64 << 10)}
	r.pause = &pausing{Store: r.store}
	seen := cache.New(w.keys)
	deps := gateway.Deps{
		Store: r.pause, Cache: seen, Logger: w.log,
		Disturbed: func(what string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.disturbed = append(r.disturbed, what)
		},
		Journal: func(_ context.Context, e store.JournalEntry) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.journal = append(r.journal, e)
		},
		Record: func(ctx context.Context, txn store.Txn, e store.JournalEntry) (store.Revision, error) {
			rev, err := r.pause.Commit(ctx, txn)
			if err == nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.journal = append(r.journal, e)
			}
			return rev, err
		},
	}
	if w.ca != nil {
		deps.Authority = w.ca
	}
	change(&deps)
	gw, err := gateway.New(gateway.Config{Replica: id, ShardID: shardID, Keys: w.keys}, deps)
	if err != nil {
		w.t.Fatal(err)
	}
	options := append(gateway.ServerOptions(), w.extra...)
	if secured := gw.Credentials(); secured != nil {
		options = append(options, grpc.Creds(secured))
	}
	r.Gateway, r.server = gw, grpc.NewServer(options...)
	protocol.RegisterGatewayServer(r.server, gw)
	ctx, cancel := context.WithCancel(context.Background())
	r.end = cancel
	r.parts.Go(func() { _ = seen.Run(ctx, r.store) })
	r.parts.Go(func() { _ = gw.Run(ctx) })
	r.parts.Go(func() { _ = r.server.Serve(r.listen) })
	synctest.Wait()
	return r
}

// stop ends the gateway in order, and returns when nothing of it runs any longer.
func (r *replica) stop() {
	r.end()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	r.Drain(ctx)
	r.server.Stop()
	r.parts.Wait()
}

func (r *replica) troubles() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.disturbed)
}

func (r *replica) entries() []store.JournalEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]store.JournalEntry(nil), r.journal...)
}

// agent is the machine's side of a stream.
type agent struct {
	t      *testing.T
	conn   *grpc.ClientConn
	stream grpc.BidiStreamingClient[protocol.AgentMessage, protocol.GatewayMessage]
	cancel context.CancelFunc
	in     chan *protocol.GatewayMessage // closed when the stream has ended
	lease  int64                         // as last received
	number uint64                        // of the last report
	told   []*protocol.Wanted            // received, and not read by the test yet
}

func hello(instance, boot string, epoch uint64) *protocol.Hello {
	return &protocol.Hello{
		Protocol: 1, Shard: shardID, Instance: instance, BootId: boot, Epoch: epoch,
		AgentVersion: "test",
	}
}

// dial makes a connection, with a certificate or none.
func (r *replica) dial(own *tls.Certificate) *grpc.ClientConn {
	r.w.t.Helper()
	secured := insecure.NewCredentials()
	if r.w.ca != nil {
		secured = credentials.NewTLS(identity.ClientConfig(shardID, own, r.w.ca.Trust()))
	}
	conn, err := grpc.NewClient("passthrough:///"+identity.Host(shardID, identity.Coordinator),
		grpc.WithTransportCredentials(secured),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return r.listen.DialContext(ctx)
		}))
	if err != nil {
		r.w.t.Fatal(err)
	}
	return conn
}

// call opens a stream with a hello; a nil hello opens it without a word.
func (r *replica) call(h *protocol.Hello) *agent {
	t := r.w.t
	t.Helper()
	conn := r.dial(r.own)
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := protocol.NewGatewayClient(conn).Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{t: t, conn: conn, stream: stream, cancel: cancel, in: make(chan *protocol.GatewayMessage, 1000)}
	go func() {
		defer close(a.in)
		for {
			msg, err := stream.Recv()
			if err != nil {
				return
			}
			a.in <- msg
		}
	}()
	if h != nil {
		a.send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Hello{Hello: h}})
	}
	return a
}

// welcomed opens a stream that must be welcomed.
func (r *replica) welcomed(h *protocol.Hello) *agent {
	r.w.t.Helper()
	a := r.call(h)
	msg := a.next()
	if msg.GetWelcome() == nil {
		r.w.t.Fatalf("hello of %s is answered with %v, want a welcome", h.GetInstance(), msg)
	}
	a.lease = msg.GetWelcome().GetLease()
	return a
}

// refused opens a stream that must be refused, and ended, and returns the refusal.
func (r *replica) refused(h *protocol.Hello, reason protocol.Refused_Reason) *protocol.Refused {
	r.w.t.Helper()
	a := r.call(h)
	defer a.hangUp()
	msg := a.next()
	if msg.GetRefused().GetReason() != reason {
		r.w.t.Fatalf("hello of %s is answered with %v, want %s", h.GetInstance(), msg, reason)
	}
	a.ends()
	return msg.GetRefused()
}

func (a *agent) send(msg *protocol.AgentMessage) {
	a.t.Helper()
	if err := a.stream.Send(msg); err != nil {
		a.t.Fatalf("send %v: %v", msg, err)
	}
}

// next returns the next message, nil if the stream has ended. News of other replicas, and what is
// wanted, is left out; see wanted.
func (a *agent) next() *protocol.GatewayMessage {
	a.t.Helper()
	for {
		select {
		case msg := <-a.in:
			switch {
			case msg.GetWanted() != nil:
				a.told = append(a.told, msg.GetWanted())
			case msg.GetCoordinators() == nil:
				return msg
			}
		case <-time.After(time.Minute):
			a.t.Fatal("nothing came for a minute")
		}
	}
}

// ends waits for the end of the stream.
func (a *agent) ends() {
	a.t.Helper()
	if msg := a.next(); msg != nil {
		a.t.Errorf("%v came, want the end of the stream", msg)
	}
}

// report sends one and returns the answer, once the replica has done with it.
func (a *agent) report(r *protocol.Report) *protocol.GatewayMessage {
	a.t.Helper()
	a.number++
	r = proto.CloneOf(r)
	r.Sequence = a.number
	a.send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: r}})
	answer := a.next()
	synctest.Wait() // it is written down after it is answered
	return answer
}

// reports sends a report that must be acknowledged.
func (a *agent) reports() {
	a.t.Helper()
	msg := a.report(&protocol.Report{Healthy: true})
	if msg.GetAck().GetSequence() != a.number {
		a.t.Fatalf("report %d is answered with %v, want an acknowledgement", a.number, msg)
	}
	a.lease = msg.GetAck().GetLease()
}

func (a *agent) goodbye(kind protocol.Goodbye_Kind) {
	a.t.Helper()
	a.send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Goodbye{Goodbye: &protocol.Goodbye{Kind: kind}}})
}

// hangUp breaks the connection off.
func (a *agent) hangUp() {
	a.cancel()
	a.conn.Close()
	for range a.in { // until the stream has ended
	}
	synctest.Wait()
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (w *world) put(key string, value []byte) store.Revision {
	w.t.Helper()
	rev, err := w.store.Commit(w.t.Context(), store.Txn{Writes: []store.Write{store.Put(key, value)}})
	if err != nil {
		w.t.Fatal(err)
	}
	return rev
}

func (w *world) remove(key string) {
	w.t.Helper()
	if _, err := w.store.Commit(w.t.Context(), store.Txn{Writes: []store.Write{store.Delete(key)}}); err != nil {
		w.t.Fatal(err)
	}
}

// record makes an instance's record in a phase.
func (w *world) record(id string, phase store.Phase) {
	w.t.Helper()
	w.put(w.keys.Instance(id), store.Encode(store.Instance{
		Schema: store.Schema, ID: id, Group: "web", Phase: phase, Managed: true,
		Spec: store.InstanceSpec{
			Provider: "mem",
			Report:   store.ReportSpec{Interval: store.Duration(interval), LeaseTTL: store.Duration(leaseTTL)},
		},
	}))
}

// gone deletes an instance's record as a leader does, and returns the revision that it had.
func (w *world) gone(id string) store.Revision {
	w.t.Helper()
	key := w.keys.Instance(id)
	rev := read[store.Instance](w, key).Modified
	w.noted(id, rev, store.Delete(key))
	return rev
}

// noted writes that an instance's record of this revision was deleted on purpose, with other
// writes.
func (w *world) noted(id string, rev store.Revision, more ...store.Write) {
	w.t.Helper()
	note := store.Gone{Schema: store.Schema, Revision: rev, Instance: id, At: time.Now().UTC()}
	writes := append([]store.Write{store.Put(w.keys.Gone(w.keys.Instance(id)), store.Encode(note))}, more...)
	if _, err := w.store.Commit(w.t.Context(), store.Txn{Writes: writes}); err != nil {
		w.t.Fatal(err)
	}
}

// read reads a record; an absent one is not Present.
func read[T any](w *world, key string) store.Versioned[T] {
	w.t.Helper()
	kv, err := w.store.Get(w.t.Context(), key)
	if err != nil {
		return store.Versioned[T]{}
	}
	v, err := store.Decode[T](kv)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func (w *world) alive(id string) store.Versioned[store.Alive] {
	w.t.Helper()
	return read[store.Alive](w, w.keys.Alive(id))
}

func (w *world) report(id string) store.Versioned[store.Report] {
	w.t.Helper()
	return read[store.Report](w, w.keys.Report(id))
}

// shows checks an alive key.
func (w *world) shows(id, replica string, epoch uint64, state store.StreamState) {
	w.t.Helper()
	a := w.alive(id)
	if !a.Present() || a.Record.Replica != replica || a.Record.Epoch != epoch || a.Record.State != state {
		w.t.Errorf("alive/%s is %+v, want epoch %d at %s, %s", id, a.Record, epoch, replica, state)
	}
}
