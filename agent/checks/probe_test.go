package checks

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/workload"
)

// patience is for what must not take long and is not measured.
const patience = 2 * time.Minute

// try runs a check once.
func try(t *testing.T, spec *protocol.CheckSpec) Result {
	t.Helper()
	return tryFor(t, spec, patience)
}

func tryFor(t *testing.T, spec *protocol.CheckSpec, timeout time.Duration) Result {
	t.Helper()
	run, err := prepare(spec, workload.Config{Dir: t.TempDir()}, nil)
	if err != nil {
		return Result("cannot pass: " + err.Error())
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	return run(ctx)
}

func web(c *protocol.HTTPCheck) *protocol.CheckSpec {
	return &protocol.CheckSpec{Name: "web", Kind: &protocol.CheckSpec_Http{Http: c}}
}

func door(c *protocol.TCPCheck) *protocol.CheckSpec {
	return &protocol.CheckSpec{Name: "door", Kind: &protocol.CheckSpec_Tcp{Tcp: c}}
}

func rpc(c *protocol.GRPCCheck) *protocol.CheckSpec {
	return &protocol.CheckSpec{Name: "rpc", Kind: &protocol.CheckSpec_Grpc{Grpc: c}}
}

func portOf(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(strings.TrimPrefix(address, "https://"), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// listen returns a server that does this with every connection, and closes it.
func listen(t *testing.T, serve func(net.Conn)) (port string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
			conn.Close()
		}
	}()
	return portOf(t, l.Addr().String())
}

// closedPort returns a port without a listener.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return portOf(t, l.Addr().String())
}

// mute accepts connections and never says anything; it hangs up when the other side does.
func mute(t *testing.T) string {
	return listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
}

// proves DET-9
func TestHTTP(t *testing.T) {
	var heard *http.Request
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		heard = r
		fmt.Fprint(w, "all is well, version 12")
	})
	mux.HandleFunc("/ill", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/ill", http.StatusFound)
	})
	mux.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/round", http.StatusFound)
	})
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) {
		line := []byte(strings.Repeat("x", 1023) + "\n")
		for {
			if _, err := w.Write(line); err != nil {
				return // it read enough
			}
		}
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	port := portOf(t, s.URL)
	for name, c := range map[string]struct {
		check *protocol.HTTPCheck
		want  Result
	}{
		"as simple as can be": {&protocol.HTTPCheck{Port: port}, ""},
		"by name": {
			&protocol.HTTPCheck{Host: "localhost", Port: port, Path: "/x?y=z", Method: "HEAD"},
			"",
		},
		"unwell":               {&protocol.HTTPCheck{Port: port, Path: "/ill"}, "status 503 Service Unavailable"},
		"unwell, as wanted":    {&protocol.HTTPCheck{Port: port, Path: "/ill", Status: []string{"200", "500-599"}}, ""},
		"well, not as wanted":  {&protocol.HTTPCheck{Port: port, Status: []string{"201-299", "404"}}, "status 200 OK"},
		"a redirection passes": {&protocol.HTTPCheck{Port: port, Path: "/moved"}, ""},
		"and is followed": {
			&protocol.HTTPCheck{Port: port, Path: "/moved", FollowRedirects: true},
			"status 503 Service Unavailable",
		},
		"not for ever": {
			&protocol.HTTPCheck{Port: port, Path: "/round", FollowRedirects: true},
			"more than 5 redirections",
		},
		"text":         {&protocol.HTTPCheck{Port: port, Body: "is well"}, ""},
		"no such text": {&protocol.HTTPCheck{Port: port, Body: "is ill"}, `"is ill" is not in the answer`},
		"pattern":      {&protocol.HTTPCheck{Port: port, BodyRegexp: `version \d+$`}, ""},
		"no such pattern": {
			&protocol.HTTPCheck{Port: port, BodyRegexp: `^version`},
			`the answer does not match "^version"`,
		},
		"an endless answer": {&protocol.HTTPCheck{Port: port, Path: "/long", Body: "y"}, `"y" is not in the answer`},
		"no listener":       {&protocol.HTTPCheck{Port: closedPort(t)}, "connection refused"},
		"no TLS there": {
			&protocol.HTTPCheck{Port: port, Scheme: "https"},
			"http: server gave HTTP response to HTTPS client",
		},
		"hangs up": {&protocol.HTTPCheck{Port: listen(t, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1<<12))
		})}, "the server closed the connection"},
		"no port":      {&protocol.HTTPCheck{Port: "http:"}, `cannot pass: port "http:": must be 1 to 65535`},
		"no such port": {&protocol.HTTPCheck{Port: "65536"}, `cannot pass: port "65536": must be 1 to 65535`},
	} {
		if got := try(t, web(c.check)); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	_ = try(t, web(&protocol.HTTPCheck{
		Port: port, Method: "PUT", Path: "/a%20b?c=d",
		Headers: map[string]string{"host": "shop.example", "X-From": "leasehold", "user-agent": "me"},
	}))
	if heard.Method != "PUT" || heard.Host != "shop.example" || heard.Header.Get("X-From") != "leasehold" ||
		heard.UserAgent() != "me" || heard.URL.String() != "/a%20b?c=d" {
		t.Errorf("heard %s %s at %s: %v", heard.Method, heard.URL, heard.Host, heard.Header)
	}
}

// caFile returns the certificate of a server's authority in a file.
func caFile(t *testing.T, cert []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// proves DET-9
func TestHTTPOverTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.RedirectHandler("https://example.com:1/", http.StatusFound))
	s.Config.ErrorLog = nil
	s.StartTLS()
	defer s.Close()
	port, ca := portOf(t, s.URL), caFile(t, s.Certificate().Raw)
	for name, c := range map[string]struct {
		tls  *protocol.TLSOptions
		want Result
	}{
		"unknown authority": {nil, "x509: certificate signed by unknown authority"},
		"taken as it is":    {&protocol.TLSOptions{SkipVerify: true}, ""},
		"known by its file": {&protocol.TLSOptions{CaFile: ca}, ""},
		"by another name":   {&protocol.TLSOptions{CaFile: ca, ServerName: "example.com"}, ""},
		"by a wrong name": {
			&protocol.TLSOptions{CaFile: ca, ServerName: "shop.test"},
			"x509: certificate is valid for example.com, *.example.com, not shop.test",
		},
		"no file": {
			&protocol.TLSOptions{CaFile: "/none"},
			"ca_file: open /none: no such file or directory",
		},
		"nothing in the file": {
			&protocol.TLSOptions{CaFile: "/dev/null"},
			"ca_file: no certificate in /dev/null",
		},
	} {
		if got := try(t, web(&protocol.HTTPCheck{Scheme: "https", Port: port, Tls: c.tls})); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// proves DET-9
func TestTCP(t *testing.T) {
	for name, c := range map[string]struct {
		port string
		want Result
	}{
		"open": {mute(t), ""}, "closed": {closedPort(t), "connection refused"},
	} {
		if got := try(t, door(&protocol.TCPCheck{Port: c.port})); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if got := try(t, door(&protocol.TCPCheck{Host: "no.such.host.invalid", Port: "1"})); !strings.HasPrefix(string(got),
		"no.such.host.invalid: no such host") && got != "server misbehaving" {
		t.Errorf("unknown host: got %q", got)
	}
}

// proves DET-9
func TestGRPC(t *testing.T) {
	serve := func(options ...grpc.ServerOption) string {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s, h := grpc.NewServer(options...), health.NewServer()
		h.SetServingStatus("shop", grpc_health_v1.HealthCheckResponse_SERVING)
		h.SetServingStatus("bank", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
		grpc_health_v1.RegisterHealthServer(s, h)
		done := make(chan struct{})
		go func() { defer close(done); _ = s.Serve(l) }()
		t.Cleanup(func() { s.Stop(); <-done })
		return portOf(t, l.Addr().String())
	}
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.StartTLS()
	defer web.Close()
	plain := serve()
	secret := serve(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: web.TLS.Certificates,
		MinVersion:   tls.VersionTLS13,
	})))
	ca := caFile(t, web.Certificate().Raw)
	for name, c := range map[string]struct {
		check *protocol.GRPCCheck
		want  Result
	}{
		"server":      {&protocol.GRPCCheck{Port: plain}, ""},
		"service":     {&protocol.GRPCCheck{Port: plain, Service: "shop"}, ""},
		"ill service": {&protocol.GRPCCheck{Port: plain, Service: "bank"}, "NOT_SERVING"},
		"no service":  {&protocol.GRPCCheck{Port: plain, Service: "none"}, `the server has no service "none"`},
		"no listener": {&protocol.GRPCCheck{Port: closedPort(t)}, "connection refused"},
		"TLS": {
			&protocol.GRPCCheck{Port: secret, Encrypted: true, Tls: &protocol.TLSOptions{CaFile: ca}},
			"",
		},
		"TLS unverified": {&protocol.GRPCCheck{
			Port: secret, Encrypted: true,
			Tls: &protocol.TLSOptions{SkipVerify: true},
		}, ""},
	} {
		if got := try(t, rpc(c.check)); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	for name, check := range map[string]*protocol.GRPCCheck{
		"TLS where there is none": {Port: plain, Encrypted: true}, "none where there is TLS": {Port: secret},
		"a web server":      {Port: portOf(t, web.URL)},
		"a wrong authority": {Port: secret, Encrypted: true},
	} {
		first := tryFor(t, rpc(check), time.Second)
		if second := tryFor(t, rpc(check), time.Second); first == "" || first != second {
			t.Errorf("%s: got %q, then %q, want one failure twice", name, first, second)
		}
	}
}

// A server that accepts connections and never answers, one that does not accept them, and one that
// answers byte by byte without end.
//
// proves DET-9
func TestServersThatHang(t *testing.T) {
	const soon = 100 * time.Millisecond
	drip := listen(t, func(c net.Conn) {
		for {
			if _, err := c.Write([]byte("H")); err != nil {
				return
			}
			<-time.After(time.Millisecond)
		}
	})
	full := fullBacklog(t)
	for name, spec := range map[string]*protocol.CheckSpec{
		"http, mute":          web(&protocol.HTTPCheck{Port: mute(t)}),
		"https, mute":         web(&protocol.HTTPCheck{Port: mute(t), Scheme: "https"}),
		"grpc, mute":          rpc(&protocol.GRPCCheck{Port: mute(t)}),
		"grpc over TLS, mute": rpc(&protocol.GRPCCheck{Port: mute(t), Encrypted: true}),
		"http, full":          web(&protocol.HTTPCheck{Port: full}), "tcp, full": door(&protocol.TCPCheck{Port: full}),
		"grpc, full": rpc(&protocol.GRPCCheck{Port: full}),
	} {
		began := time.Now()
		if got := tryFor(t, spec, soon); got != timedOut {
			t.Errorf("%s: got %q, want %q", name, got, timedOut)
		}
		if took := time.Since(began); took > patience {
			t.Errorf("%s: took %s", name, took)
		}
	}
	if got := tryFor(t, web(&protocol.HTTPCheck{Port: drip}), soon); got == "" {
		t.Error("a server that never comes to an end passes")
	}
}

// fullBacklog returns a port whose server takes no connections, so that further ones wait.
func fullBacklog(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	shrinkBacklog(t, raw)
	for {
		conn, err := (&net.Dialer{Timeout: 200 * time.Millisecond}).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			return portOf(t, l.Addr().String())
		}
		t.Cleanup(func() { conn.Close() })
	}
}

// The same failure always gives the same text: otherwise every report would be new.
//
// proves DET-16
func TestFailuresAreReportedWithoutAddresses(t *testing.T) {
	reset := listen(t, func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) })
	for range 20 {
		for _, spec := range []*protocol.CheckSpec{
			web(&protocol.HTTPCheck{Port: reset}),
			rpc(&protocol.GRPCCheck{Port: reset}),
		} {
			if got := try(t, spec); got == "" || strings.Contains(string(got), "127.0.0.1") {
				t.Fatalf("got %q", got)
			}
		}
	}
	if got := failure(t.Context(),
		&url.Error{Err: &net.OpError{
			Op:  "read",
			Err: io.ErrUnexpectedEOF,
		}}); got != "the server closed the connection" {
		t.Errorf("got %q", got)
	}
}
