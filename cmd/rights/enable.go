package rights

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Entry opens a connection to etcd as some user. The returned function closes it.
type Entry func(context.Context) (Etcd, func() error, error)

// ErrLockedOut means that root could not log in, so authentication was turned off again.
var ErrLockedOut = errors.New("root could not get in, so authentication was turned off again")

const (
	// enterTime bounds the attempt to log in.
	enterTime = 30 * time.Second
	// returnTime bounds all attempts to turn authentication off again: what fails now and then on a
	// slow etcd must not lock everyone out.
	returnTime = 3 * time.Minute
	// spare is a second root user while authentication is being turned on, with a password that is
	// forgotten afterwards.
	spare = "leasehold-auth-init"
)

// Enable turns authentication on, and checks that root can log in. If root cannot, a spare root
// turns it off again, which may take minutes: goesBack is called before.
func Enable(ctx context.Context, etcd Etcd, root Entry, spareRoot func(name, password string) Entry,
	password string, goesBack func(),
) error {
	if err := errors.Join(etcd.AddUser(ctx, spare, password), etcd.Give(ctx, spare, store.RoleRoot)); err != nil {
		return errors.Join(err, etcd.RemoveUser(context.WithoutCancel(ctx), spare))
	}
	// The steps are completed even if the caller's context ends.
	ctx = context.WithoutCancel(ctx)
	if err := etcd.Enable(ctx); err != nil {
		return errors.Join(err, etcd.RemoveUser(ctx, spare))
	}
	failed := try(ctx, root, func(ctx context.Context, e Etcd) error { return e.RemoveUser(ctx, spare) })
	if failed == nil {
		return nil
	}
	goesBack()
	if err := disable(ctx, spareRoot(spare, password)); err != nil {
		return fmt.Errorf("root cannot log in (%w), and authentication could not be disabled again: %w", failed, err)
	}
	return errors.Join(fmt.Errorf("%w: %w", ErrLockedOut, failed), etcd.RemoveUser(ctx, spare))
}

// disable turns authentication off, and tries again for a while if that fails.
func disable(ctx context.Context, root Entry) error {
	ctx, cancel := context.WithTimeout(ctx, returnTime)
	defer cancel()
	for {
		err := try(ctx, root, func(ctx context.Context, e Etcd) error { return e.Disable(ctx) })
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

// try does something as a user.
func try(ctx context.Context, entry Entry, do func(context.Context, Etcd) error) error {
	ctx, cancel := context.WithTimeout(ctx, enterTime)
	defer cancel()
	e, leave, err := entry(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, e), leave())
}
