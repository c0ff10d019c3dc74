package measure

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Metrics are a server's metrics, by name and labels: `requests_total{method="Put"}`.
type Metrics map[string]float64

// MetricsOf fetches a server's metrics.
func MetricsOf(ctx context.Context, url string) (Metrics, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read metrics of %s: %s", url, resp.Status)
	}
	return readMetrics(resp.Body)
}

// readMetrics reads Prometheus's text format.
func readMetrics(r io.Reader) (Metrics, error) {
	all := Metrics{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, rest, _ := strings.Cut(line, " ")
		if end := strings.LastIndexByte(line, '}'); end >= 0 { // a label may contain spaces
			name, rest = line[:end+1], line[end+1:]
		}
		fields := strings.Fields(rest) // the value, and an optional timestamp
		if len(fields) == 0 {
			return nil, fmt.Errorf("read metrics: %q has no value", line)
		}
		value, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			return nil, fmt.Errorf("read metrics: %w", err)
		}
		all[name] = value
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return all, nil
}

// Sum adds up the metrics with this name and all of these labels (`method="Put"`).
func (m Metrics) Sum(name string, labels ...string) float64 {
	sum := 0.0
next:
	for full, value := range m {
		bare, has, _ := strings.Cut(full, "{")
		if bare != name {
			continue
		}
		for _, l := range labels {
			if !strings.Contains("{"+has, l) {
				continue next
			}
		}
		sum += value
	}
	return sum
}
