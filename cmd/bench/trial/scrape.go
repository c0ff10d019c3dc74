package trial

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/measure"
)

// scrapeTime is long, because the machine is busy while it is measured.
const scrapeTime = 30 * time.Second

// scrape fetches a replica's metrics.
func scrape(ctx context.Context, r *replica) (measure.Metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTime)
	defer cancel()
	n, err := measure.MetricsOf(ctx, "http://"+r.http+"/metrics")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.id, err)
	}
	return n, nil
}
