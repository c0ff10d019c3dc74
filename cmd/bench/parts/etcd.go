package parts

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/leasehold/leasehold/store/embedetcd"
)

// Etcd returns the part that runs an etcd with one member, on a free port of this machine, with its
// data below dir.
func Etcd(ctx context.Context, dir string, log io.Writer, ready func(Ready) error) error {
	server, err := embedetcd.Start(ctx, embedetcd.Config{
		DataDir: filepath.Join(dir, "etcd"), Listen: "127.0.0.1:0", Logger: slog.New(slog.NewJSONHandler(log, nil)),
	})
	if err != nil {
		return err
	}
	if err := ready(Ready{Address: server.Endpoint()}); err != nil {
		return errors.Join(err, server.Close())
	}
	select {
	case <-ctx.Done():
		return server.Close()
	case <-server.Stopped():
		return errors.Join(errors.New("etcd stopped by itself"), server.Close())
	}
}
