package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/leasehold/leasehold/provider"
)

var _ provider.Console = (*Provider)(nil)

// Console is the end of the machine's log. It waits for no other call: reading is harmless.
func (p *Provider) Console(ctx context.Context, shard, instance string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkNames(shard, instance); err != nil {
		return nil, err
	}
	_, err := p.find(shard, instance)
	var tail []byte
	if err == nil {
		tail, err = readTail(p.LogPath(instance), provider.ConsoleTail)
	}
	if errors.Is(err, errAbsent) {
		err = provider.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read console of machine %s: %w", instance, err)
	}
	return tail, nil
}

// readTail reads the end of a file; a file that is not there has none.
func readTail(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-most), most))
}
