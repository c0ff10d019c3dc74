package scale

import "github.com/leasehold/leasehold/store"

// State is what the next step depends on besides the wish.
type State struct {
	Size    int  // in force
	Largest int  // the largest wish that counts still, the present one included
	Risen   bool // more has been wished for for up.window
	// Added is by how many it has grown within up.every, From the size before.
	Added, From int
	// MayShrink: the size has not changed for down.every.
	MayShrink bool
	// Halted is why the size must not shrink, whatever load asks for (AUTO-5); "" if it may.
	Halted store.ScaleStays
}

// Step is the size that a group goes to now, and why that is not the wish. The size stays where
// nothing is known.
func Step(spec *store.ScaleSpec, wish Wish, s State) (size int, stays store.ScaleStays) {
	wanted := spec.Within(wish.Size)
	switch {
	case wish.Starting:
		return s.Size, store.ScaleStarting
	case wish.Unknown:
		return s.Size, store.ScaleUnknown
	case wanted > s.Size:
		return grow(spec, wish.Size, wanted, s)
	case wish.Size > wanted && wanted == s.Size:
		return s.Size, store.ScaleAtMost
	case wanted == s.Size:
		return s.Size, ""
	case s.Halted != "":
		return s.Size, s.Halted
	case wish.Silent:
		return s.Size, store.ScaleSilent
	case s.Largest >= s.Size:
		return s.Size, store.ScaleWindowDown
	case !s.MayShrink:
		return s.Size, store.ScaleRateDown
	}
	to := max(wanted, s.Largest, spec.Within(wish.Settling))
	if next := s.Size - max(1, spec.Down.Step.Up(s.Size)); next > to {
		return next, store.ScaleRateDown
	}
	switch {
	case to == wanted:
		return to, ""
	case to > s.Largest:
		return to, store.ScaleSettling
	default:
		return to, store.ScaleWindowDown
	}
}

func grow(spec *store.ScaleSpec, asked, wanted int, s State) (int, store.ScaleStays) {
	from := s.Size
	if s.Added > 0 {
		from = min(s.From, s.Size)
	}
	switch next := s.Size + max(1, spec.Up.Step.Up(from)) - s.Added; {
	case !s.Risen:
		return s.Size, store.ScaleWindowUp
	case next <= s.Size:
		return s.Size, store.ScaleRateUp
	case next < wanted:
		return next, store.ScaleRateUp
	case asked > wanted:
		return wanted, store.ScaleAtMost
	default:
		return wanted, ""
	}
}
