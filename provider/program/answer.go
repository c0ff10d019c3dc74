package program

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// answer is what the program writes: one of the two.
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

// err is the failure as the contract has it.
func (f *failure) err() error {
	e := &provider.Error{Kind: provider.Kind(f.Code), Scope: Clip(f.Scope), Message: Clip(f.Message)}
	known := false
	for _, k := range provider.Kinds {
		known = known || k == e.Kind
	}
	if !known {
		return fmt.Errorf("the program answered with the error code %q, which is none: %s", Clip(f.Code), e.Message)
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

// Clip bounds what a program may have us say.
func Clip(s string) string {
	const most = 500
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
