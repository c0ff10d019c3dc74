package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
)

// File writes events from many goroutines, and keeps none in memory. Add returns after the event is
// in the file.
type File struct {
	mu     sync.Mutex
	file   *os.File
	failed error
}

// Append appends events to a file.
func Append(path string) (*File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keep the history: %w", err)
	}
	return &File{file: file}, nil
}

// Add adds an event. One without a time is of now.
func (f *File) Add(e Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.At == 0 {
		e.At = Now()
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = f.file.Write(append(line, '\n'))
	}
	if err != nil && f.failed == nil {
		f.failed = fmt.Errorf("keep the history: %w", err)
	}
}

// Close closes the file, and returns an error if the history is incomplete.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.failed, f.file.Close())
}

// Log is a file of events that also keeps them in memory.
type Log struct {
	file *File

	mu     sync.Mutex
	events []Event
	waked  chan struct{} // closed with the next event
}

// Open opens a log that appends to a file.
func Open(path string) (*Log, error) {
	file, err := Append(path)
	if err != nil {
		return nil, err
	}
	return &Log{file: file, waked: make(chan struct{})}, nil
}

// Add adds an event. One without a time is of now.
func (l *Log) Add(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.At == 0 {
		e.At = Now()
	}
	l.events = append(l.events, e)
	l.file.Add(e)
	close(l.waked)
	l.waked = make(chan struct{})
}

// Events returns the events so far, in the order of their arrival.
func (l *Log) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// More is closed with the next event.
func (l *Log) More() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waked
}

// Close closes the file, and returns an error if the history is incomplete.
func (l *Log) Close() error { return l.file.Close() }

// Read reads the files of one process or several, in the order of time. A missing file is empty; an
// incomplete last line is dropped.
func Read(paths ...string) ([]Event, error) {
	var all []Event
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		data = data[:bytes.LastIndexByte(data, '\n')+1]
		lines := bufio.NewScanner(bytes.NewReader(data))
		lines.Buffer(nil, 64<<20)
		for n := 1; lines.Scan(); n++ {
			var e Event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, n, err)
			}
			all = append(all, e)
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return Ordered(all), nil
}

// Ordered merges the events of several logs in the order of time. Events at the same time keep
// their order.
func Ordered(all []Event) []Event {
	slices.SortStableFunc(all, func(a, b Event) int { return int(min(1, max(-1, a.At-b.At))) })
	return all
}
