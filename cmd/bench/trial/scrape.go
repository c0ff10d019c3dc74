package trial

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/measure"
)

// scrapeTime is much: a machine that is measured is a busy one.
const scrapeTime = 30 * time.Second

// scrape asks a replica for its numbers.
func scrape(ctx context.Context, r *replica) (measure.Metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTime)
	defer cancel()
	n, err := measure.MetricsOf(ctx, "http://"+r.http+"/metrics")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.id, err)
	}
	return n, nil
}
