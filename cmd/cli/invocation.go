package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/store"
)

// Invocation is one run of one command: its flags, and the shard it works on.
type Invocation struct {
	env      Env
	flags    *Globals
	settings []setting // the sources of the flags' values
	args     []string  // the command line
	command  string    // the command's name, such as "group scale"
	st       store.Store
	close    func() error
	waited   bool          // the user knows that the command waits for etcd
	answers  *bufio.Reader // reader for answers; shared, since it reads ahead
	api      *requestOfAPI // nil: a command, not an API request
}

// open opens the store at the first use. It sends no request to etcd yet.
func (inv *Invocation) open(ctx context.Context) (store.Store, error) {
	if inv.st != nil {
		return inv.st, nil
	}
	st, closer, err := inv.connect(ctx, nil)
	if err != nil {
		return nil, err
	}
	inv.st, inv.close = st, closer
	return st, nil
}

// connect opens the store that the flags name; its error says what an operator can do.
func (inv *Invocation) connect(ctx context.Context, log *slog.Logger) (store.Store, func() error, error) {
	if err := checkEndpoints(inv.flags.Endpoints); err != nil {
		return nil, nil, err
	}
	st, closer, err := inv.env.Open(ctx, inv.connection(log))
	if err != nil {
		return nil, nil, inv.openFailed(ctx, err)
	}
	return st, closer, nil
}

// openFailed explains what an operator can do about an etcd that could not be opened.
func (inv *Invocation) openFailed(ctx context.Context, err error) error {
	var file *program.FileError
	switch {
	case errors.Is(err, store.ErrDenied):
		return inv.denied(ctx, err, "use etcd")
	case errors.As(err, &file):
		return failure(Usage,
			"give readable files that belong together; leasehold config show says where each name comes from", "%s",
			joined(err))
	case ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable):
		return failureRun(Usage, "leasehold --help", "%s", joined(err))
	case errors.Is(err, store.ErrUnavailable):
		return failure(Unreachable, whatHelps(err.Error()), "%s", joined(err)) // it names the endpoints already
	default:
		return err
	}
}

// end closes what was opened. Errors do not matter: the process ends.
func (inv *Invocation) end() {
	if inv.close != nil {
		_ = inv.close()
	}
}

func (inv *Invocation) keys() store.Keys { return store.KeysOf(inv.flags.Shard) }

func (inv *Invocation) requestLimit() time.Duration {
	if inv.flags.Timeout > 0 {
		return inv.flags.Timeout
	}
	return cmp.Or(inv.env.RequestTimeout, requestTimeout)
}

// ask runs one operation on the store within the time limit of a request, and explains its error to
// an operator. On a terminal it reports a long wait and its cause. may is the action that a refusal
// names.
func (inv *Invocation) ask(ctx context.Context, what, may string, do func(context.Context, store.Store) error) error {
	limited, cancel := context.WithTimeout(ctx, inv.requestLimit())
	defer cancel()
	if inv.env.StderrTerminal && !inv.waited {
		printed := make(chan struct{})
		timer := time.AfterFunc(300*time.Millisecond, func() {
			defer close(printed)
			fmt.Fprintf(inv.env.Stderr, "%s\n",
				inv.aside().Dim("waiting for etcd at "+strings.Join(inv.flags.Endpoints, ", ")+" …"))
		})
		defer func() {
			if !timer.Stop() {
				<-printed
				inv.waited = true
			}
		}()
	}
	st, err := inv.open(limited)
	if err == nil {
		err = do(limited, st)
	}
	var known *Failure
	switch {
	case errors.As(err, &known):
		return known
	case err == nil, ctx.Err() != nil, errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrConflict),
		errors.Is(err, store.ErrCompacted):
		return err
	case errors.Is(err, store.ErrDenied):
		return inv.denied(limited, err, may)
	case errors.Is(err, store.ErrUnknown):
		return failureRun(Unreachable, "leasehold status",
			"%s: etcd's answer was lost: the operation may or may not have been carried out", what)
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return inv.unreachable(what, err)
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}

// whatHelps suggests what to do about an etcd that could not be opened for this reason.
func whatHelps(why string) string {
	switch {
	case strings.Contains(why, "remote error: tls: expired certificate"):
		return "your certificate has expired, or a clock is wrong; where it was issued: leasehold pki issue NAME --renew"
	case strings.Contains(why, "remote error: tls:"):
		return "give --cert and --key issued by the authority in etcd's --trusted-ca-file"
	case strings.Contains(why, "x509: certificate has expired"):
		return "etcd's certificate has expired, or a clock is wrong; where it was issued: " +
			"leasehold pki issue NAME --host HOST --renew"
	case strings.Contains(why, "x509:"):
		return "give --cacert of the authority that issued etcd's certificate, and use an address that the certificate names"
	case strings.Contains(why, "it takes connections and answers nothing"):
		return "see whether that etcd stands still (paused, or its disk blocked); " +
			"if it speaks TLS, give --cacert, --cert and --key"
	case strings.Contains(why, "server preface"):
		return "if that etcd speaks TLS, give --cacert, --cert and --key, and no http://; " +
			"for a leasehold dev with another --data-dir: --config DIR/config.yaml"
	default:
		return startEtcd
	}
}

const startEtcd = "start etcd there, or everything with leasehold dev; or name another with " +
	"--endpoints or LEASEHOLD_ENDPOINTS"

// makeRoom is the next step for an etcd that has raised its NOSPACE alarm.
const makeRoom = "etcdctl compact with the revision that leasehold status -o json shows, " +
	"etcdctl defrag on each member, etcdctl alarm disarm, then run the same command"

// unreachable explains what an operator can do about a store that does not answer or rejects a
// request.
func (inv *Invocation) unreachable(what string, err error) error {
	var known *Failure
	if errors.As(err, &known) {
		return known
	}
	where := strings.Join(inv.flags.Endpoints, ", ")
	if errors.Is(err, store.ErrFull) {
		return failure(Unreachable, makeRoom, "%s: etcd at %s rejects writes: its space quota is exhausted", what,
			where)
	}
	if lost := inv.noQuorum(); lost != "" {
		return failure(Unreachable, "start etcd, or leasehold server, there again; if it is lost for good: "+
			"docs/production.md", "%s: %s", what, lost)
	}
	why := fmt.Sprintf("no answer in %s", inv.requestLimit())
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		why = joined(err)
	}
	return failure(Unreachable, startEtcd, "%s: etcd at %s cannot be reached: %s", what, where, why)
}

func (inv *Invocation) get(ctx context.Context, key string) (kv store.KV, err error) {
	err = inv.ask(ctx, "read "+key, inv.reading(key), func(ctx context.Context, st store.Store) error {
		kv, err = st.Get(ctx, key)
		return err
	})
	return kv, err
}

// find is get, with the zero KV for a missing key.
func (inv *Invocation) find(ctx context.Context, key string) (store.KV, error) {
	kv, err := inv.get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return store.KV{Key: key}, nil
	}
	return kv, err
}

// listRestarts is how often a list of the newest state restarts when its revision is compacted
// during the list.
const listRestarts = 3

// atOneRevision reads at one revision, or at the newest for 0, and restarts if that one is
// compacted during the read.
func atOneRevision(at store.Revision, read func() error) (err error) {
	for attempt := 0; ; attempt++ {
		if err = read(); at != 0 || !errors.Is(err, store.ErrCompacted) || attempt >= listRestarts {
			return err
		}
	}
}

// list reads all keys below a prefix at one revision, the newest for 0.
func (inv *Invocation) list(ctx context.Context, prefix string, at store.Revision) (l store.Listing, err error) {
	err = atOneRevision(at, func() error {
		l = store.Listing{}
		return inv.parts(ctx, prefix, "", 0, at, func(part store.Part) bool {
			l.KVs, l.Revision = append(l.KVs, part.KVs...), part.Revision
			return true
		})
	})
	return l, err
}

// parts reads keys below a prefix at one revision, or at the newest for 0, from a key on, until
// take returns false: most keys at a time, unless most is 0. Each part is a request with its own
// time limit, so a large shard can be read from a busy etcd.
func (inv *Invocation) parts(ctx context.Context, prefix, from string, most int, at store.Revision,
	take func(store.Part) (more bool),
) error {
	for {
		var part store.Part
		err := inv.ask(ctx, "list "+prefix, inv.reading(prefix), func(ctx context.Context, st store.Store) (err error) {
			part, err = st.ListPart(ctx, prefix, from, most, at)
			return err
		})
		if err != nil {
			return err
		}
		if !take(part) || part.Next == "" {
			return nil
		}
		from, at = part.Next, part.Revision
	}
}

func (inv *Invocation) commit(ctx context.Context, what string, txn store.Txn) (rev store.Revision, err error) {
	err = inv.ask(ctx, what, inv.writing(txn), func(ctx context.Context, st store.Store) error {
		rev, err = st.Commit(ctx, txn)
		return err
	})
	if inv.api != nil {
		inv.api.wrote = rev
	}
	return rev, err
}

// note prints a message besides the result.
func (inv *Invocation) note(format string, args ...any) {
	fmt.Fprintln(inv.env.Stderr, fmt.Sprintf(format, args...)) // so that vet checks the arguments of callers
}

func (inv *Invocation) warn(format string, args ...any) {
	inv.note("%s %s", inv.aside().Notice("warning:"), fmt.Sprintf(format, args...))
}
