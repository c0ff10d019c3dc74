package agent

import (
	"context"
	"log/slog"
)

// keeper starts and stops the workload, one after the other and apart from the loop, since a workload may take
// its time to end. Only the last wish counts.
type keeper struct {
	workload Workload
	log      *slog.Logger

	wanted chan bool     // holds the last wish that was not taken up
	done   chan struct{} // a wish was fulfilled
	ended  chan struct{}
	last   bool // the last wish
}

func newKeeper(w Workload, log *slog.Logger) *keeper {
	return &keeper{
		workload: w, log: log,
		wanted: make(chan bool, 1), done: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

// want is called by the loop alone.
func (k *keeper) want(run bool) {
	select {
	case <-k.wanted:
	default:
	}
	k.last = run
	k.wanted <- run
}

// run follows the wishes until conclude.
func (k *keeper) run(ctx context.Context) {
	defer close(k.ended)
	for run := range k.wanted {
		if !run {
			k.workload.Stop(ctx)
		} else if err := k.workload.Start(); err != nil {
			k.log.Warn("workload was not started", "error", err)
		}
		select {
		case k.done <- struct{}{}:
		default:
		}
	}
}

// conclude waits for what is under way, then ends the workload, or leaves it running if it is to be kept and
// may run.
func (k *keeper) conclude(ctx context.Context, keep bool) {
	select {
	case <-k.wanted:
	default:
	}
	close(k.wanted)
	<-k.ended
	if keep && k.last {
		k.workload.Release()
		return
	}
	k.workload.Stop(ctx)
}
