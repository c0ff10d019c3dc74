// Package lxdtest starts a real LXD for tests, with nothing in it, and stops it when they end, also
// if they fail. It reads LXD's state with its own client, so that the provider's mistakes show.
//
// It needs root and Linux. LXD is installed where it is missing (scripts/lxd.sh).
package lxdtest

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/leasehold/leasehold/tests/harness"
)

// Pool is the storage pool, and the image of Import is to be found by its alias.
const Pool = "default"

// LXD is a running LXD.
type LXD struct {
	*harness.Daemon
	http *http.Client
}

// Start starts an LXD with a storage pool. If another test has one, it waits for that to end.
func Start() (*LXD, error) {
	daemon, err := harness.StartDaemon("LXD", "scripts/lxd.sh", "run")
	if err != nil {
		return nil, err
	}
	l := &LXD{Daemon: daemon}
	l.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", l.Socket())
		},
	}}
	if err := l.Do(http.MethodPost, "/1.0/storage-pools", map[string]any{"name": Pool, "driver": "dir"}, nil); err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return l, nil
}

// Socket is LXD's unix socket.
func (l *LXD) Socket() string { return filepath.Join(l.Dir, "unix.socket") }

// Stop takes LXD down, and all that it has made. It is an error if anything is left.
func (l *LXD) Stop() error {
	l.http.CloseIdleConnections()
	return l.Daemon.Stop()
}

// patience is how long LXD may take for anything.
const patience = time.Minute

// Do sends a request to LXD, waits for the operation that it may begin, and reads what is answered.
// A body of bytes is sent as it is.
func (l *LXD) Do(method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	raw, isRaw := body.([]byte)
	if !isRaw && body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://lxd"+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	if isRaw {
		req.Header.Set("Content-Type", "application/octet-stream")
	}
	resp, err := l.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Type, Operation, Error string
		Metadata               json.RawMessage
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if answer.Error != "" {
		return fmt.Errorf("%s %s: %s", method, path, answer.Error)
	}
	if answer.Type == "async" {
		var op struct{ Err string }
		if err := l.Do(http.MethodGet, answer.Operation+"/wait", nil, &op); err != nil {
			return err
		}
		if op.Err != "" {
			return fmt.Errorf("%s %s: %s", method, path, op.Err)
		}
		return nil
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer.Metadata, into)
}

// InitPID is the first process of a container, as this host numbers it.
func (l *LXD) InitPID(name string) (int, error) {
	var state struct{ PID int }
	if err := l.Do(http.MethodGet, "/1.0/instances/"+name+"/state", nil, &state); err != nil {
		return 0, err
	}
	if state.PID <= 1 {
		return 0, fmt.Errorf("container %s does not run", name)
	}
	return state.PID, nil
}

// Import makes an image whose only content is programs, each the file of a path on this host.
func (l *LXD) Import(alias string, programs map[string]string) error {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	var image bytes.Buffer
	w := tar.NewWriter(&image)
	add := func(name string, mode int64, content []byte) error {
		h := &tar.Header{Name: name, Mode: mode, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err := w.Write(content)
		return err
	}
	err := add("metadata.yaml", 0o644, fmt.Appendf(nil, "architecture: %s\ncreation_date: 1700000000\n", arch))
	for _, dir := range []string{"", "dev/", "etc/", "proc/", "run/", "sbin/", "bin/", "sys/", "tmp/", "var/"} {
		err = errors.Join(err, add("rootfs/"+dir, 0o755, nil))
	}
	for path, source := range programs {
		content, e := os.ReadFile(source)
		err = errors.Join(err, e, add("rootfs"+path, 0o755, content))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("make image %s: %w", alias, err)
	}
	return l.importTar(alias, image.Bytes())
}

// ImportFile makes an image of a file: a tar of metadata.yaml and rootfs.
func (l *LXD) ImportFile(alias, path string) error {
	image, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return l.importTar(alias, image)
}

func (l *LXD) importTar(alias string, image []byte) error {
	if err := l.Do(http.MethodPost, "/1.0/images", image, nil); err != nil {
		return err
	}
	var urls []string
	if err := l.Do(http.MethodGet, "/1.0/images", nil, &urls); err != nil {
		return err
	}
	for _, u := range urls {
		var has struct{ Aliases []struct{ Name string } }
		if err := l.Do(http.MethodGet, u, nil, &has); err != nil {
			return err
		}
		if len(has.Aliases) == 0 {
			return l.Do(http.MethodPost, "/1.0/images/aliases", map[string]string{
				"name": alias, "target": filepath.Base(u),
			}, nil)
		}
	}
	return fmt.Errorf("image %s was imported and is not there", alias)
}

// BuildInit builds the smallest machine's init into a directory.
func BuildInit(dir string) (string, error) {
	file := filepath.Join(dir, "init")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file,
		"github.com/leasehold/leasehold/provider/lxd/lxdtest/init")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build init: %w\n%s", err, out)
	}
	return file, nil
}
