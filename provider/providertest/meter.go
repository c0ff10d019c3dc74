package providertest

import (
	"net/http"
	"sync"
	"time"
)

// Meter counts requests. Its zero value is ready.
type Meter struct {
	mu    sync.Mutex
	times []time.Time
}

// Add counts a request.
func (m *Meter) Add() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.times = append(m.times, time.Now())
}

// Before counts the requests to a handler.
func (m *Meter) Before(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.Add()
		h.ServeHTTP(w, r)
	})
}

// Count returns the number of requests.
func (m *Meter) Count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.times)
}

// Busiest returns the largest number of requests in any span of that length.
func (m *Meter) Busiest(span time.Duration) (most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := 0
	for i, at := range m.times {
		for at.Sub(m.times[first]) >= span {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
