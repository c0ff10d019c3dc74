package dnsserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/netutil"

	"github.com/leasehold/leasehold/coordinator/discovery"
)

// Config are the values that a server needs.
type Config struct {
	Listen string // by UDP and TCP; port 0 picks a port that is free for both
	Zone   string // the name that all others are below
	// Allow are the networks whose queries are answered; empty: Private.
	Allow []netip.Prefix
}

// Private returns the networks that are not routed on the Internet. A server that answers all
// clients would help attackers who spoof addresses (amplification), and show outsiders what runs
// here.
func Private() []netip.Prefix {
	var all []netip.Prefix
	for _, text := range []string{
		"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16",
		"::1/128", "fc00::/7", "fe80::/10",
	} {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// Limits on what clients can make us spend.
const (
	maxConnections = 128 // by TCP, at once
	maxQueries     = 128 // on one of them
	readTime       = 2 * time.Second
	idleTime       = 8 * time.Second // between two queries on a connection
	endTime        = time.Second     // for answers under way when the server ends
	maxQuery       = 1232            // bytes, by UDP
)

// Server answers queries for the names of one zone.
type Server struct {
	cfg   Config
	zone  zone
	log   *slog.Logger
	udp   *net.UDPConn
	tcp   net.Listener
	allow []netip.Prefix
}

// New makes a server that does not listen yet.
func New(cfg Config, d *discovery.Directory, log *slog.Logger) (*Server, error) {
	labels, valid := dns.IsDomainName(cfg.Zone)
	if !valid || labels == 0 || cfg.Zone == "." || strings.ContainsAny(cfg.Zone, " \\\"/_*@") {
		return nil, fmt.Errorf("%q is not the name of a zone", cfg.Zone)
	}
	s := &Server{
		cfg: cfg, log: log, zone: zone{name: strings.ToLower(dns.Fqdn(cfg.Zone)), directory: d}, allow: cfg.Allow,
	}
	if len(s.allow) == 0 {
		s.allow = Private()
	}
	return s, nil
}

// Listen takes the address.
func (s *Server) Listen(ctx context.Context) error {
	const tries = 16 // port 0: what is free for UDP may be taken for TCP
	var err error
	for range tries {
		if err = s.listen(ctx); err == nil || !strings.HasSuffix(s.cfg.Listen, ":0") {
			break
		}
	}
	return err
}

func (s *Server) listen(ctx context.Context) error {
	var listening net.ListenConfig
	packets, err := listening.ListenPacket(ctx, "udp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen for dns on %s: %w", s.cfg.Listen, err)
	}
	udp, ok := packets.(*net.UDPConn)
	if !ok {
		return errors.Join(errors.New("listen for dns: not a UDP socket"), packets.Close())
	}
	tcp, err := listening.Listen(ctx, "tcp", udp.LocalAddr().String())
	if err != nil {
		return errors.Join(fmt.Errorf("listen for dns on %s: %w", s.cfg.Listen, err), udp.Close())
	}
	s.udp, s.tcp = udp, netutil.LimitListener(tcp, maxConnections)
	return nil
}

// Address returns where the server listens.
func (s *Server) Address() string { return s.udp.LocalAddr().String() }

// Zone returns the name that all others are below, with its final dot.
func (s *Server) Zone() string { return s.zone.name }

// Close releases the address. It is for a server that does not run.
func (s *Server) Close() error { return errors.Join(s.udp.Close(), s.tcp.Close()) }

// Run serves until ctx ends. Listen comes before.
func (s *Server) Run(ctx context.Context) error {
	started := make(chan struct{}, 2)
	servers := []*dns.Server{
		{PacketConn: s.udp, Handler: s.handler(true), UDPSize: maxQuery},
		{Listener: s.tcp, Handler: s.handler(false), MaxTCPQueries: maxQueries},
	}
	ended := make(chan error, len(servers))
	var serving sync.WaitGroup
	defer serving.Wait()
	for _, server := range servers {
		server.ReadTimeout, server.WriteTimeout = readTime, readTime
		server.IdleTimeout = func() time.Duration { return idleTime }
		server.NotifyStartedFunc = func() { started <- struct{}{} }
		serving.Go(func() { ended <- server.ActivateAndServe() })
	}
	var failed error
	for running := 0; running < len(servers) && failed == nil; {
		select { // a server that has not started cannot be shut down
		case <-started:
			running++
		case failed = <-ended:
		}
	}
	if failed == nil {
		select {
		case failed = <-ended:
		case <-ctx.Done():
		}
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	for _, server := range servers {
		_ = server.ShutdownContext(end) // an error means that it has ended; slow readers are not waited for
	}
	_ = s.Close() // of a server that had not started yet
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("serve dns: %w", failed)
}

func (s *Server) handler(udp bool) dns.Handler {
	return dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) {
		var reply *dns.Msg
		if s.admits(w.RemoteAddr()) {
			reply = s.zone.answer(query, udp)
		} else {
			reply = refuse(new(dns.Msg).SetReply(query), dns.RcodeRefused)
		}
		if err := w.WriteMsg(reply); err != nil {
			s.log.Debug("dns answer not sent", "error", err)
		}
	})
}

// admits reports whether an address gets answers.
func (s *Server) admits(from net.Addr) bool {
	at, err := netip.ParseAddrPort(from.String())
	if err != nil {
		return false
	}
	ip := at.Addr().Unmap().WithZone("")
	for _, network := range s.allow {
		if network.Contains(ip) {
			return true
		}
	}
	return false
}
