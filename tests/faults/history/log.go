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

// File takes events from many at once, and keeps none of them in memory. Each is in the file before
// Add returns.
type File struct {
	mu     sync.Mutex
	file   *os.File
	failed error
}

// Append adds events to a file, after what is there.
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

// Close closes the file, and says whether all of the history is in it.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.failed, f.file.Close())
}

// Log is a file of events that keeps them in memory as well.
type Log struct {
	file *File

	mu     sync.Mutex
	events []Event
	waked  chan struct{} // closed with the next event
}

// Open makes a log that is kept in a file, after what is there.
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

// Events are those so far, in the order in which they came.
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

// Close closes the file, and says whether all of the history is in it.
func (l *Log) Close() error { return l.file.Close() }

// Read reads what was kept, of one process or several, in the order of time. A file that is not
// there holds nothing; a last line that was cut short is left out.
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

// Ordered puts events of several logs into the order of time. What happened at one time stays in
// the order it has.
func Ordered(all []Event) []Event {
	slices.SortStableFunc(all, func(a, b Event) int { return int(min(1, max(-1, a.At-b.At))) })
	return all
}
