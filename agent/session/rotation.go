package session

import "slices"

// rotation is the order in which replicas are asked. Each agent has its own, so that the agents of
// a replica that is lost spread over all others.
type rotation struct {
	known  []string // the last list from a replica
	extras []string // from the bootstrap document, without those in known: may be long gone
	last   string   // the one asked last
}

func newRotation(known, bootstrap []string, random func() float64) rotation {
	var r rotation
	r.known = shuffled(known, nil, random)
	r.extras = shuffled(bootstrap, r.known, random)
	if len(r.known) == 0 {
		r.known, r.extras = r.extras, nil
	}
	return r
}

// same reports whether the list holds exactly the replicas that are known.
func (r rotation) same(list []string) bool {
	a, b := slices.Sorted(slices.Values(r.known)), slices.Sorted(slices.Values(list))
	return slices.Equal(a, b)
}

// after returns the replica to ask next: the one after last, never the one to avoid. The bootstrap
// document's are asked only if wide.
func (r rotation) after(avoid string, wide bool) (string, bool) {
	all := r.known
	if wide {
		all = slices.Concat(r.known, r.extras)
	}
	begin := slices.Index(all, r.last) + 1
	for i := range all {
		if a := all[(begin+i)%len(all)]; a != avoid {
			return a, true
		}
	}
	return "", false
}

// shuffled returns the list in random order, without blanks, duplicates and the replicas in except.
func shuffled(list, except []string, random func() float64) []string {
	var out []string
	for _, a := range list {
		if a != "" && !slices.Contains(out, a) && !slices.Contains(except, a) {
			out = append(out, a)
		}
	}
	for i := len(out) - 1; i > 0; i-- {
		j := int(random() * float64(i+1))
		out[i], out[j] = out[j], out[i]
	}
	return out
}
