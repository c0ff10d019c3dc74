package imagined

// Serves says whether an instance does its work as far as those can tell who use it: its machine runs and its checks pass, whether
// or not any coordinator hears of that.
func (w *World) Serves(id string) bool {
	a := w.agents[id]
	return a != nil && a.m.running() && a.up && !a.retired && a.passing()
}
