package agentcmd

import (
	"log/slog"
	"os"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/cmd/supervised"
)

// An agent that receives a signal to end as a trial ends becomes neither the new version nor its
// own program again: neither would know of the signal. The outcome of the trial stands.
//
// proves PROV-7, DET-8
func TestSignalledAsATrialEnds(t *testing.T) {
	for name, next := range map[string]string{"won": "/bin/true", "lost": ""} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := supervised.UntilTerminated(syscall.SIGUSR1)
			defer stop()
			if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
				t.Fatal(err)
			}
			<-ctx.Done()
			p := programs{log: slog.New(slog.DiscardHandler)}
			if err := p.goOn(ctx, nil, next, nil, os.Environ()); err == nil {
				t.Error("it goes on as another program")
			}
		})
	}
}
