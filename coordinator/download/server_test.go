package download_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/coordinator/download"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Programs are told by their names, which must be true; a directory without any is an error.
//
// proves PROV-7
func TestReadingPrograms(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	for name, test := range map[string]struct {
		files map[string]string
		want  string // in the error; "": none
	}{
		"none":               {map[string]string{"leasehold-agent": string(content)}, "has neither"},
		"this one":           {map[string]string{"leasehold-agent-linux-" + runtime.GOARCH: string(content)}, ""},
		"of another machine": {map[string]string{"leasehold-agent-linux-" + other: string(content)}, "not for"},
		"no program":         {map[string]string{"leasehold-agent-linux-amd64": "#!/bin/sh\n"}, "not a program for Linux"},
	} {
		dir := t.TempDir()
		for file, text := range test.files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		agents, err := download.Read(dir, slog.New(slog.DiscardHandler))
		if test.want != "" {
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		sum := sha256.Sum256(content)
		if got := agents.Sums(); err != nil || len(got) != 1 || got[runtime.GOARCH] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// The server hands out the programs and nothing else; one request too many is told to come again;
// it ends with its context.
//
// proves PROV-7
func TestServingPrograms(t *testing.T) {
	authority := httptest.NewUnstartedServer(nil) // its certificate is all that is wanted
	authority.StartTLS()
	certificate := authority.TLS.Certificates[0]
	client := authority.Client()
	defer authority.Close()
	content := strings.Repeat("program", 10_000)
	agents := download.Agents{"amd64": {Content: []byte(content), SHA256: "abc"}}
	var failing error
	s := download.New(agents, func() (*tls.Certificate, error) { return &certificate, failing },
		slog.New(slog.DiscardHandler))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, listener) }()

	for _, test := range []struct {
		method, path string
		want         string
	}{
		{"GET", download.Path("amd64"), "200 " + content},
		{"HEAD", download.Path("amd64"), "200 "},
		{"GET", download.Path("arm64"), "404 404 page not found\n"},
		{"GET", "/", "404 404 page not found\n"},
		{"GET", "/agent/", "404 404 page not found\n"},
		{"POST", download.Path("amd64"), "405 GET or HEAD\n"},
	} {
		req, err := http.NewRequestWithContext(ctx, test.method, "https://"+listener.Addr().String()+test.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if got := fmt.Sprintf("%d %s", answer.StatusCode, body); err != nil || got != test.want {
			t.Errorf("%s %s: %.100s, %v", test.method, test.path, got, err)
		}
	}
	client.CloseIdleConnections()

	// While as many as may be read slowly, the next is sent away; then there is room again.
	slow := make(chan struct{})
	begun := make(chan struct{})
	for range 32 {
		go func() {
			w := &slowWriter{ResponseRecorder: httptest.NewRecorder(), begun: begun, until: slow}
			s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, download.Path("amd64"), http.NoBody))
			begun <- struct{}{}
		}()
		<-begun
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, download.Path("amd64"), http.NoBody))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("one too many: %d %v", w.Code, w.Header())
	}
	close(slow)
	for range 32 {
		<-begun
	}
	w = httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, download.Path("amd64"), http.NoBody))
	if w.Code != http.StatusOK || w.Body.String() != content {
		t.Errorf("afterwards: %d", w.Code)
	}

	failing = errors.New("the authority has ended")
	if answer, err := client.Get("https://" + listener.Addr().String() + download.Path("amd64")); err == nil {
		answer.Body.Close()
		t.Error("served without a certificate")
	}
	client.CloseIdleConnections()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// slowWriter takes nothing until it may.
type slowWriter struct {
	*httptest.ResponseRecorder
	begun chan<- struct{}
	until <-chan struct{}
	told  bool
}

func (w *slowWriter) Write(p []byte) (int, error) {
	if !w.told {
		w.told = true
		w.begun <- struct{}{}
		<-w.until
	}
	return w.ResponseRecorder.Write(p)
}
