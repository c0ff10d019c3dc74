package trial

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// numbers are what a replica tells, by name with labels.
type numbers map[string]float64

// scrapeTime is much: a machine that is measured is a busy one.
const scrapeTime = 30 * time.Second

// scrape asks a replica for its numbers.
func scrape(ctx context.Context, r *replica) (numbers, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.http+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask %s for its numbers: %w", r.id, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask %s for its numbers: %s", r.id, resp.Status)
	}
	n := numbers{}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		if v, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			n[line[:at]] = v
		}
	}
	return n, lines.Err()
}

// sum adds up all numbers of a name whose labels have a part.
func (n numbers) sum(name, with string) (total float64) {
	for key, v := range n {
		rest, ok := strings.CutPrefix(key, name)
		if ok && (rest == "" || rest[0] == '{') && strings.Contains(rest, with) {
			total += v
		}
	}
	return total
}
