package plan

// draftWith returns a draft of which only what a test sets is known.
func draftWith(set func(d *draft)) *draft {
	d := &draft{}
	d.connect()
	set(d)
	return d
}
