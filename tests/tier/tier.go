// Package tier tells tests in which tier they run: every day (make test) or at night (make nightly,
// which builds them with the tag nightly). A test that belongs to the night is in a file of its own
// with the constraint
//
//	//go:build nightly
//
// so that the everyday run does not select it; none is skipped. A test that runs in both, and only
// tries more at night, takes the count from Pick.
package tier

// Pick returns the first of two values every day, and the second at night.
func Pick[T any](everyday, night T) T {
	if Nightly {
		return night
	}
	return everyday
}
