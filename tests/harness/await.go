package harness

import "time"

// Failer is the part of testing.TB that Await needs.
type Failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Await waits until a condition holds, and fails the test after the limit. It polls, because such
// conditions depend on other processes. state describes what is there instead; it may be nil.
func Await(t Failer, what string, limit, every time.Duration, condition func() bool, state func() string) {
	t.Helper()
	tick := time.NewTicker(every)
	defer tick.Stop()
	late := time.NewTimer(limit)
	defer late.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-late.C:
			text := ""
			if state != nil {
				text = "\n" + state()
			}
			t.Fatalf("waited %s without success for: %s%s", limit, what, text)
		}
	}
}
