package harness

import (
	"bytes"
	"sync"
)

// Output holds what is written to it. It may be read at the same time. Its zero value is ready.
type Output struct {
	// More gets a value after each write, if it has room; nil: none.
	More chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.text.Write(p)
	select {
	case o.More <- struct{}{}:
	default:
	}
	return n, err
}

// Bytes returns a copy of the output so far.
func (o *Output) Bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.text.Bytes())
}

// String returns the output so far.
func (o *Output) String() string { return string(o.Bytes()) }
