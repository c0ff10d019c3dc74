package etcdstore

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Config says where etcd is and how we authenticate. A zero field has the default that is named
// beside it.
type Config struct {
	Endpoints []string    // host:port or URL of each member's client port; at least one
	TLS       *tls.Config // nil: not encrypted
	Username  string      // with Password; empty: no password login
	Password  string
	Logger    *slog.Logger // nil: silent

	// Compactor is the client that compacts, where authentication is on: etcd lets only root do it.
	// nil: the same client.
	Compactor *tls.Config

	// DialTimeout is how long Open waits for the first answer (5s; with a password 20s, since etcd
	// checks one slowly on purpose, and slower on a busy machine).
	DialTimeout time.Duration
	// WatchSilence is how long a watch may receive nothing, although it requests progress every
	// second, before it is opened again, on another member if there is one (5s).
	WatchSilence time.Duration

	// RenewStreams is over how many streams renewals are spread (4).
	RenewStreams int
	// RenewStall is how long a stream may owe its oldest answer before it is closed and opened
	// again (2s).
	RenewStall time.Duration
	// LeaderCheck is how often we look which member leads (3s).
	LeaderCheck time.Duration

	token string // of a login that every request carries; "": see Username
}

// progressInterval is how often a watch asks for progress: the contract of store.Store.Watch.
const progressInterval = time.Second

// withDefaults fills in what was left out, and refuses what cannot work.
func (c Config) withDefaults() (Config, error) {
	var endpoints []string
	for _, e := range c.Endpoints {
		if e = strings.TrimSpace(e); e != "" {
			endpoints = append(endpoints, e)
		}
	}
	c.Endpoints = endpoints
	if len(c.Endpoints) == 0 {
		return c, errors.New("open etcd store: no endpoint given: name at least one as host:port")
	}
	if (c.Username == "") != (c.Password == "") {
		return c, errors.New("open etcd store: user name and password go together: give both or neither")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	dial := 5 * time.Second
	if c.Password != "" {
		dial = loginTime
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		def   time.Duration
	}{
		{"DialTimeout", &c.DialTimeout, dial},
		{"WatchSilence", &c.WatchSilence, 5 * time.Second},
		{"RenewStall", &c.RenewStall, 2 * time.Second},
		{"LeaderCheck", &c.LeaderCheck, 3 * time.Second},
	} {
		if *d.value < 0 {
			return c, fmt.Errorf("open etcd store: %s: %s: must not be negative", d.name, *d.value)
		}
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	if c.RenewStreams < 0 || c.RenewStreams > 64 {
		return c, fmt.Errorf("open etcd store: RenewStreams: %d: must be from 1 to 64", c.RenewStreams)
	}
	if c.RenewStreams == 0 {
		c.RenewStreams = 4
	}
	return c, nil
}
