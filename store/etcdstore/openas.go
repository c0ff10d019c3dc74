package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/leasehold/leasehold/store"
)

// ErrOpen is the error of OpenAs for an etcd that asks no user for anything.
var ErrOpen = errors.New("etcd has no authentication: it cannot distinguish users")

// loginTime is how long Open waits by default for the first answer to a login with a password.
const loginTime = 20 * time.Second

// OpenAs connects to etcd as a user with a password, over the certificate of another client. Every
// request carries the user's login: etcd takes the name in the certificate where none is shown, and
// a client that logs in by itself shows none after it once met an etcd without authentication. So
// the login is made first, and the store works for no longer than that is valid.
func OpenAs(ctx context.Context, cfg Config, user, password string) (*Store, error) {
	if user == "" || password == "" {
		return nil, fmt.Errorf("log in to etcd: %w", store.ErrLogin)
	}
	cfg.Username, cfg.Password, cfg.token = user, password, ""
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	cfg.Username, cfg.Password = "", ""
	if cfg.token, err = login(ctx, cfg, user, password); err != nil {
		return nil, err
	}
	return Open(ctx, cfg)
}

// login returns the token of a new login.
func login(ctx context.Context, cfg Config, user, password string) (string, error) {
	s := &Store{cfg: cfg}
	s.ctx, s.cancel = context.WithCancel(ctx)
	defer s.cancel()
	dialing, stop := context.WithTimeout(ctx, cfg.DialTimeout)
	defer stop()
	client, err := s.newClient(dialing)
	if err != nil {
		return "", s.explainDial(dialing, err)
	}
	defer func() { _ = closeClient(client) }()
	answer, err := client.Authenticate(dialing, user, password)
	switch {
	case errors.Is(err, rpctypes.ErrAuthNotEnabled):
		return "", ErrOpen
	case err != nil:
		return "", s.explainDial(dialing, err)
	case answer.Token == "":
		return "", fmt.Errorf("log in to etcd: %w: no token", store.ErrLogin)
	}
	return answer.Token, nil
}
