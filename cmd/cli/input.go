package cli

import (
	"context"
	"io"
)

// input is a reader whose reads end when ctx does. A read of a terminal or a pipe cannot be
// canceled: that one outlives ctx until the process ends.
type input struct {
	ctx  context.Context //nolint:containedctx // io.Reader has no place for it
	from io.Reader
}

func (i *input) Read(to []byte) (int, error) {
	type answer struct {
		data []byte
		err  error
	}
	came := make(chan answer, 1)
	go func() {
		data := make([]byte, len(to)) // a late answer must not reach the caller's buffer
		n, err := i.from.Read(data)
		came <- answer{data[:n], err}
	}()
	select {
	case <-i.ctx.Done():
		return 0, i.ctx.Err()
	case a := <-came:
		return copy(to, a.data), a.err
	}
}
