package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/leasehold/leasehold/agent/secrets"
)

// defaultOutputLimit is the size limit of each of the two output files.
const defaultOutputLimit = 8 << 20

// TailSize is how much of a workload's last output is kept for the report of its exit (DET-19).
const TailSize = 64 << 10

// output is the pair of files with the workload's output: the present one and the previous one.
type output struct {
	path  string
	limit int64
	mu    sync.Mutex // held while the files are cut, opened or read, even while the disk hangs
}

func (o *output) earlier() string { return o.path + ".1" }

// open returns the file for the workload's output, emptied if asked. It is opened for appending, so
// that truncating it leaves no hole.
func (o *output) open(empty bool) (*os.File, error) {
	o.mu.Lock() // a cut under way would remove what is written from now on
	defer o.mu.Unlock()
	f, err := os.OpenFile(o.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return nil, fmt.Errorf("open workload output: %w", err)
	}
	if !empty {
		return f, nil
	}
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(fmt.Errorf("empty workload output: %w", err), f.Close())
	}
	return f, nil
}

// bound keeps the output within its limit until the context ends.
func (o *output) bound(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := o.cut(); err != nil {
				log.Debug("output is not bounded", "error", err, "file", o.path)
			}
		}
	}
}

// cut moves the output to the earlier file once it exceeds the limit. The workload keeps the file
// open, so cut copies it and truncates it in place. What the workload writes between the two is
// lost. If it wrote more than the limit since the last look, the beginning of that is lost too.
func (o *output) cut() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	f, err := os.OpenFile(o.path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cut workload output: %w", err)
	}
	return errors.Join(o.shorten(f), f.Close())
}

func (o *output) shorten(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("cut workload output: %w", err)
	}
	if info.Size() <= o.limit {
		return nil
	}
	earlier, err := os.OpenFile(o.earlier(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o640)
	if err != nil {
		return fmt.Errorf("cut workload output: %w", err)
	}
	_, err = io.Copy(earlier, io.NewSectionReader(f, info.Size()-o.limit, o.limit))
	if err := errors.Join(err, earlier.Close()); err != nil {
		// The file must not grow on a full disk either.
		return errors.Join(fmt.Errorf("keep workload output: %w", err), f.Truncate(0))
	}
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("cut workload output: %w", err)
	}
	return nil
}

// tail returns the end of the output, at most TailSize. It leaves out what cannot be read.
func (o *output) tail() []byte {
	last := readEnd(o.path, TailSize)
	if missing := TailSize - int64(len(last)); missing > 0 {
		last = append(readEnd(o.earlier(), missing), last...)
	}
	return last
}

// said returns the tail without secrets.
func (o *output) said(hidden *secrets.Holder) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := hidden.VeilEnd(o.tail())
	return text[max(0, len(text)-TailSize):]
}

// lateOutput replaces output that the disk did not deliver in time.
const lateOutput = "(its last output was not read: the disk of the machine did not answer in time)\n"

// saidSoon is said with a time limit, because an end is reported even if the disk hangs.
func (o *output) saidSoon(hidden *secrets.Holder) []byte {
	read := make(chan []byte, 1)
	go func() { read <- o.said(hidden) }() // ends when the disk answers
	late := time.NewTimer(diskWait)
	defer late.Stop()
	select {
	case text := <-read:
		return text
	case <-late.C:
		return []byte(lateOutput)
	}
}

func readEnd(path string, most int64) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	size := min(info.Size(), most)
	data, err := io.ReadAll(io.NewSectionReader(f, info.Size()-size, size))
	if err != nil {
		return nil
	}
	return data
}
