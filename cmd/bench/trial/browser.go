package trial

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/chromedp/chromedp"
)

// Drawn is how long a browser took to draw updates, with layout.
type Drawn struct {
	Updates int     `json:"updates"`
	P50     float64 `json:"p50_ms"`
	P99     float64 `json:"p99_ms"`
	Longest float64 `json:"longest_ms"`
}

func drawnOf(all []float64) *Drawn {
	if len(all) == 0 {
		return &Drawn{}
	}
	slices.Sort(all)
	at := func(share float64) float64 { return all[min(len(all)-1, int(share*float64(len(all))))] }
	return &Drawn{Updates: len(all), P50: at(.50), P99: at(.99), Longest: all[len(all)-1]}
}

// browserTime is how long a browser may take to start, or to answer.
const browserTime = time.Minute

// timing has the page note how long each update takes, until it is laid out.
const timing = `window.drawn = [], window.plain = apply, window.apply = u => {
	const from = performance.now();
	plain(u);
	document.body.offsetHeight;
	if (u.changes?.length) drawn.push(performance.now() - from);
}, stream?.readyState === 1`

// browser is a headless Chromium that reads a live page.
type browser struct {
	ctx context.Context
	end func()
}

func openBrowser(ctx context.Context, url string) (*browser, error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.Flag("disable-dev-shm-usage", true))
	if os.Geteuid() == 0 { // its sandbox refuses root, and all that it opens is ours
		options = append(options, chromedp.NoSandbox)
	}
	allocated, end := chromedp.NewExecAllocator(ctx, options...)
	tab, stop := chromedp.NewContext(allocated)
	b := &browser{tab, func() { stop(); end() }}
	if err := chromedp.Do(tab); err != nil { // without a time limit: that would be the tab's
		b.end()
		return nil, fmt.Errorf("start chromium (scripts/test-needs.sh installs it): %w", err)
	}
	limited, cancel := context.WithTimeout(tab, browserTime)
	defer cancel()
	err := chromedp.Do(limited, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(url))
	for live := false; err == nil && !live; {
		if live, err = chromedp.Run(limited, chromedp.Evaluate[bool]("stream?.readyState === 1")); !live && err == nil {
			select {
			case <-limited.Done():
				err = limited.Err()
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	if err == nil {
		_, err = chromedp.Run(limited, chromedp.Evaluate[bool](timing))
	}
	if err != nil {
		b.end()
		return nil, fmt.Errorf("open %s in chromium: %w", url, err)
	}
	return b, nil
}

// close ends the browser. It returns how many milliseconds each update took.
func (b *browser) close() ([]float64, error) {
	defer b.end()
	limited, cancel := context.WithTimeout(b.ctx, browserTime)
	defer cancel()
	drawn, err := chromedp.Run(limited, chromedp.Evaluate[[]float64]("drawn"))
	if err != nil {
		return nil, fmt.Errorf("ask chromium what it drew: %w", err)
	}
	return drawn, nil
}
