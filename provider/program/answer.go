package program

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/clip"
)

// answer is a program's output: a result or an error.
type answer struct {
	Result json.RawMessage `json:"result"`
	Error  *failure        `json:"error"`
}

// failure is an error by its code.
type failure struct {
	Code       string  `json:"code"`
	Scope      string  `json:"scope"`
	Message    string  `json:"message"`
	RetryAfter float64 `json:"retry_after"` // seconds
}

// err returns the failure as an error of the contract.
func (f *failure) err() error {
	e := &provider.Error{Kind: provider.Kind(f.Code), Scope: Clip(f.Scope), Message: Clip(f.Message)}
	known := false
	for _, k := range provider.Kinds {
		known = known || k == e.Kind
	}
	if !known {
		return fmt.Errorf("the program answered with the unknown error code %q: %s", Clip(f.Code), e.Message)
	}
	if e.Kind == provider.Throttled {
		if e.After = Seconds(f.RetryAfter); e.After <= 0 || e.After > longestThrottle {
			e.After = defaultThrottle
		}
	}
	return e
}

const (
	defaultThrottle = 10 * time.Second
	longestThrottle = 10 * time.Minute
)

// Seconds is a duration of the protocol.
func Seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// Times are the consistency and the call timeout that a program describes.
func Times(consistency, callTimeout float64) (age, timeout time.Duration, err error) {
	for _, f := range []struct {
		name      string
		value     float64
		low, high time.Duration
	}{
		{"consistency", consistency, 0, time.Hour},
		{"call_timeout", callTimeout, time.Second, MaxTimeout},
	} {
		if !(f.value >= f.low.Seconds() && f.value <= f.high.Seconds()) { // NaN is refused as well
			return 0, 0, fmt.Errorf("%s: %v: must be %v to %v seconds", f.name, f.value, f.low.Seconds(), f.high.Seconds())
		}
	}
	return Seconds(consistency), Seconds(callTimeout), nil
}

// Clip shortens a program's text.
func Clip(s string) string { return clip.Marked(s, 500) }
